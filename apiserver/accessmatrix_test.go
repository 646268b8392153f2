package apiserver_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"kontiki/internal/pki"
)

// The verbs of the API by one letter each, with how they are asked for: method, whether of an object, query.
var verbLetters = []struct {
	letter       rune
	verb, method string
	object       bool
	query        string
}{
	{'g', "get", "GET", true, ""},
	{'l', "list", "GET", false, ""},
	{'w', "watch", "GET", false, "watch=1&resourceVersion=x"},
	{'c', "create", "POST", false, "dryRun=All"},
	{'u', "update", "PUT", true, "dryRun=All"},
	{'p', "patch", "PATCH", true, "dryRun=All"},
	{'d', "delete", "DELETE", true, "dryRun=All"},
	{'D', "deletecollection", "DELETE", false, "dryRun=All"},
}

const (
	inDefault = "/api/v1/namespaces/default/"
	allVerbs  = "glwcupdD"
	reads     = "glw"
)

// The access matrix: what Kubernetes' default roles let whom do, per class of resource. Verbs are letters of verbLetters; verbs is what is
// asked. view, edit and admin are bound in the namespace default; node is system:node:n1; controllers and scheduler are the users of
// kube-controller-manager and kube-scheduler; anybody has a certificate or token and no role (so has every service account).
// cluster-admin and system:masters may do all of it, anonymous nothing.
var matrix = []struct {
	path, verbs                                     string
	view, edit, admin, node, controllers, scheduler string
	anybody                                         string
}{
	{inDefault + "pods", allVerbs, reads, allVerbs, allVerbs, "c", allVerbs, "glwd", ""},
	{inDefault + "pods/x/log", "g", "g", "g", "g", "", "g", "", ""},
	{inDefault + "pods/x/exec", "gc", "", "gc", "gc", "", "g", "", ""},
	{inDefault + "pods/x/status", "gup", "g", "g", "g", "", "gup", "up", ""},
	{inDefault + "pods/x/eviction", "c", "", "c", "c", "", "", "", ""},
	{inDefault + "pods/x/binding", "c", "", "", "", "", "c", "c", ""},
	{inDefault + "pods/x/ephemeralcontainers", "gup", "", "", "", "", "gup", "", ""},
	{inDefault + "secrets", allVerbs, "", allVerbs, allVerbs, "", allVerbs, "", ""},
	{inDefault + "configmaps", allVerbs, reads, allVerbs, allVerbs, "", allVerbs, "", ""},
	{inDefault + "services", allVerbs, reads, allVerbs, allVerbs, reads, "glwupdD", reads, ""},
	{inDefault + "services/x/proxy", "gcupd", "", "gcupd", "gcupd", "", "gupd", "", ""},
	{inDefault + "serviceaccounts", allVerbs, reads, allVerbs, allVerbs, "", allVerbs, "", ""},
	{inDefault + "serviceaccounts/x/token", "c", "", "c", "c", "", "c", "", ""},
	{inDefault + "resourcequotas", allVerbs, reads, reads, reads, "", "glwupdD", "", ""},
	{inDefault + "limitranges", allVerbs, reads, reads, reads, "", "glwupdD", "", ""},
	{inDefault + "endpoints", allVerbs, reads, reads, reads, "g", allVerbs, "", ""},
	{inDefault + "persistentvolumeclaims", allVerbs, reads, allVerbs, allVerbs, "", allVerbs, "glwup", ""},
	{inDefault + "events", allVerbs, reads, allVerbs, allVerbs, "cup", allVerbs, "cup", ""},
	{"/api/v1/namespaces", "glwcupd", "", "", "", "lw", "glwupd", reads, ""},
	{"/api/v1/nodes", allVerbs, "", "", "", "lwc", "glwupdD", reads, ""},
	{"/api/v1/nodes/x/proxy", "gcupd", "", "", "", "", "gupd", "", ""},
	{"/api/v1/nodes/x/status", "gup", "", "", "", "", "gup", "", ""},
	{"/api/v1/persistentvolumes", allVerbs, "", "", "", "", allVerbs, "glwup", ""},
	{"/apis/apps/v1/namespaces/default/deployments", allVerbs, reads, allVerbs, allVerbs, "", "glwupdD", "", ""},
	{"/apis/apps/v1/namespaces/default/deployments/x/scale", "gup", "g", "gup", "gup", "", "gup", "", ""},
	{"/apis/apps/v1/namespaces/default/controllerrevisions", allVerbs, reads, reads, reads, "", allVerbs, "", ""},
	{"/apis/batch/v1/namespaces/default/jobs", allVerbs, reads, allVerbs, allVerbs, "", allVerbs, "", ""},
	{"/apis/networking.k8s.io/v1/namespaces/default/networkpolicies", allVerbs, reads, allVerbs, allVerbs, "lw", "glwupdD", "", ""},
	{"/apis/policy/v1/namespaces/default/poddisruptionbudgets", allVerbs, reads, allVerbs, allVerbs, "", "glwupdD", reads, ""},
	{"/apis/coordination.k8s.io/v1/namespaces/default/leases", allVerbs, "", allVerbs, allVerbs, "", allVerbs, "c", ""},
	{"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", allVerbs, "", "", "", "lc", allVerbs, "c", ""},
	{"/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", allVerbs, "", "", allVerbs, "", "glwupdD", "", ""},
	{"/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", allVerbs, "", "", allVerbs, "", "glwupdD", "", ""},
	{"/apis/rbac.authorization.k8s.io/v1/clusterroles", allVerbs, "", "", "", "", "glwupdD", "", ""},
	{"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", allVerbs, "", "", "", "", "glwupdD", "", ""},
	{"/apis/certificates.k8s.io/v1/certificatesigningrequests", allVerbs, "", "", "", "glwc", "glwupdD", "", ""},
	{"/apis/certificates.k8s.io/v1/certificatesigningrequests/x/approval", "gup", "", "", "", "", "gup", "", ""},
	{"/apis/storage.k8s.io/v1/csinodes", allVerbs, "", "", "", "c", "glwupdD", reads, ""},
	{"/apis/storage.k8s.io/v1/storageclasses", allVerbs, "", "", "", "", "glwupdD", reads, ""},
	{"/apis/scheduling.k8s.io/v1/priorityclasses", allVerbs, "", "", "", "", "glwupdD", "", ""},
	{"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", allVerbs, "", "", "", "", "glwupdD", "", ""},
	{"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", allVerbs, "", "", "", "", "glwupdD", "", ""},
	{"/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", allVerbs, "", "", "", "", "glwupdD", "", ""},
	{"/apis/authentication.k8s.io/v1/tokenreviews", "c", "", "", "", "c", "c", "c", ""},
	{"/apis/authentication.k8s.io/v1/selfsubjectreviews", "c", "c", "c", "c", "c", "c", "c", "c"},
	{"/apis/authorization.k8s.io/v1/subjectaccessreviews", "c", "", "", "", "c", "c", "c", ""},
	{"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "c", "c", "c", "c", "c", "c", "c", "c"},
	{"/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews", "c", "", "", "c", "c", "", "", ""},
	{"/livez", "g", "g", "g", "g", "g", "g", "g", "g"},
	{"/version", "g", "g", "g", "g", "g", "g", "g", "g"},
	{"/api", "g", "g", "g", "g", "g", "g", "g", "g"},
	{"/openapi/v3", "g", "g", "g", "g", "g", "g", "g", "g"},
	{"/metrics", "g", "", "", "", "", "", "", ""},
	{"/", "g", "", "", "", "", "", "", ""},
}

// TestAccessMatrix walks every class of user, verb and resource through the chain, as real requests. Whoever may is answered something that is
// no refusal of the authorizer: mostly 404, 400 or 422, since there is no such object, no body, and no such revision to watch from.
func TestAccessMatrix(t *testing.T) {
	cluster, c := start(t)
	for _, role := range []string{"view", "edit", "admin"} {
		c.post(rbacPath+"namespaces/default/rolebindings", fmt.Sprintf(
			`{"metadata":{"name":%q},"roleRef":{"kind":"ClusterRole","name":%q},"subjects":[{"kind":"User","name":%q}]}`, role, role, role)).ok()
	}
	c.post(rbacPath+"clusterrolebindings", `{"metadata":{"name":"boss"},"roleRef":{"kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"User","name":"boss"}]}`).ok()
	// Aggregated roles are the work of a controller, which does not run here.
	for _, role := range []string{"view", "edit", "admin"} {
		rules := []any{}
		for _, part := range []string{"view", "edit", "admin"} {
			found, _, err := unstructuredSlice(c.get(rbacPath+"clusterroles/system:aggregate-to-"+part).ok(), "rules")
			require.NoError(t, err)
			if rules = append(rules, found...); part == role {
				break
			}
		}
		c.patch(rbacPath+"clusterroles/"+role, mergePatch, `{"rules":`+jsonOf(t, rules)+`}`).ok()
	}
	as := func(name string, groups ...string) func() []string {
		return func() []string { return append([]string{name}, groups...) }
	}
	users := []struct {
		name string
		who  func() []string // user and groups; nil is nobody in particular
		may  func(row int) string
	}{
		{"masters", as("root", "system:masters"), func(row int) string { return matrix[row].verbs }},
		{"cluster-admin", as("boss"), func(row int) string { return matrix[row].verbs }},
		{"view", as("view"), func(row int) string { return matrix[row].view }},
		{"edit", as("edit"), func(row int) string { return matrix[row].edit }},
		{"admin", as("admin"), func(row int) string { return matrix[row].admin }},
		{"node", as("system:node:n1", "system:nodes"), func(row int) string { return matrix[row].node }},
		{"controllers", as("system:kube-controller-manager"), func(row int) string { return matrix[row].controllers }},
		{"scheduler", as("system:kube-scheduler"), func(row int) string { return matrix[row].scheduler }},
		{"anybody", as("jane", "dev"), func(row int) string { return matrix[row].anybody }},
		{"account", as("system:serviceaccount:default:robot"), func(row int) string { return matrix[row].anybody }},
		// Names that once meant more than their roles say.
		{"the server's client", as("kube-apiserver-kubelet-client", "system:kontiki"), func(row int) string { return matrix[row].anybody }},
		{"system:apiserver", as("system:apiserver"), func(row int) string { return matrix[row].anybody }},
		{"a node without the group", as("system:node:n1"), func(row int) string { return matrix[row].anybody }},
	}
	eventually(t, func() bool { return c.get("/metrics", "Impersonate-User", "boss").code == 200 })
	eventually(t, func() bool { return c.get(inDefault+"pods", "Impersonate-User", "view").code == 200 })
	eventually(t, func() bool { return c.get(inDefault+"secrets", "Impersonate-User", "edit").code == 200 })
	eventually(t, func() bool {
		return c.get(rbacPath+"namespaces/default/roles", "Impersonate-User", "admin").code == 200
	})
	asked := 0
	for _, user := range users {
		for row := range matrix {
			got := ""
			for _, verb := range verbLetters {
				if !strings.ContainsRune(matrix[row].verbs, verb.letter) {
					continue
				}
				asked++
				if mayDo(c, row, verb.letter, user.who()) {
					got += string(verb.letter)
				}
			}
			require.Equal(t, user.may(row), got, "%s on %s", user.name, matrix[row].path)
		}
	}
	// Nobody in particular: what is public, and 401 for everything else.
	nobody := clientFor(t, rest.AnonymousClientConfig(cluster.REST(pki.Admin)))
	for row := range matrix {
		want := 401
		if path := matrix[row].path; path == "/livez" || path == "/version" {
			want = 200
		}
		require.Equal(t, want, nobody.get(matrix[row].path).code, matrix[row].path)
		asked++
	}
	t.Logf("%d requests", asked)
}

// mayDo sends the request that a letter stands for, as somebody, and reports whether the authorizer lets it pass.
func mayDo(c *client, row int, letter rune, who []string) bool {
	c.t.Helper()
	for _, verb := range verbLetters {
		if verb.letter != letter {
			continue
		}
		path := matrix[row].path
		inGroup := strings.HasPrefix(path, "/api/v1/") || strings.HasPrefix(path, "/apis/")
		ofSubresource := strings.Contains(path, "/x/")
		if verb.object && inGroup && !ofSubresource {
			path += "/x"
		}
		if verb.query != "" && inGroup {
			path += "?" + verb.query
		}
		body, kind := "", "application/json"
		if verb.method == "PATCH" {
			body, kind = "{}", mergePatch
		} else if verb.method == "POST" || verb.method == "PUT" {
			body = "{}"
		}
		headers := []string{"Content-Type", kind, "Impersonate-User", who[0]}
		if len(who) > 1 {
			headers = append(headers, "Impersonate-Group", who[1])
		}
		answer := c.do(verb.method, path, body, headers...)
		require.NotEqual(c.t, 401, answer.code)
		refused := answer.code == 403 && strings.Contains(string(answer.body), `User \"`) && strings.Contains(string(answer.body), "cannot "+verb.verb)
		if answer.code == 403 && !refused {
			require.NotContains(c.t, string(answer.body), "cannot", "a refusal that is not the authorizer's")
		}
		return !refused
	}
	panic("no such verb")
}

func unstructuredSlice(a answer, field string) ([]any, bool, error) {
	value, ok := a.object().Object[field].([]any)
	if !ok {
		return nil, false, fmt.Errorf("no %s in %s", field, a.body)
	}
	return value, true, nil
}

func jsonOf(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	require.NoError(t, err)
	return string(data)
}
