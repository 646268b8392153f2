package apiserver_test

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const quotasPath = "/api/v1/namespaces/default/resourcequotas"

// makeQuota creates a quota and does what the controller does: it says that nothing is used yet.
func makeQuota(c *client, name, hard, used, more string) {
	c.t.Helper()
	c.post(quotasPath, `{"metadata":{"name":"`+name+`"},"spec":{"hard":{`+hard+`}`+more+`}}`).ok()
	c.patch(quotasPath+"/"+name+"/status", mergePatch, `{"status":{"hard":{`+hard+`},"used":{`+used+`}}}`).ok()
}

func usedOf(c *client, name string) map[corev1.ResourceName]string {
	c.t.Helper()
	out := map[corev1.ResourceName]string{}
	for resource, amount := range decoded[corev1.ResourceQuota](c.get(quotasPath + "/" + name).ok()).Status.Used {
		out[resource] = amount.String()
	}
	return out
}

func TestResourceQuotas(t *testing.T) {
	_, c := start(t)
	pod := func(name, more string) string {
		return `{"metadata":{"name":"` + name + `"},"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"100m"},"limits":{"cpu":"200m"}}}]` + more + `}}`
	}
	c.post(quotasPath, `{"metadata":{"name":"new"},"spec":{"hard":{"pods":"3"}}}`).ok()
	c.patch(quotasPath+"/new/status", mergePatch, `{"status":{"hard":{"pods":"3"}}}`).ok()
	c.post(podsPath, pod("a", "")).fails(403, metav1.StatusReasonForbidden, `pods "a" is forbidden: status unknown for quota: new, resources: pods`)
	c.delete(quotasPath+"/new", "").ok()

	makeQuota(c, "q", `"pods":"2","requests.cpu":"250m","count/configmaps":"1","services.nodeports":"1"`,
		`"pods":"0","requests.cpu":"0","count/configmaps":"0","services.nodeports":"0"`, "")
	c.post(podsPath, `{"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i"}]}}`).
		fails(403, metav1.StatusReasonForbidden, `pods "a" is forbidden: failed quota: q: must specify requests.cpu for: c`)
	c.post(podsPath+"?dryRun=All", pod("dry", "")).ok()
	c.post(podsPath, pod("a", "")).ok()
	c.post(podsPath, pod("a", "")).fails(409, metav1.StatusReasonAlreadyExists, "")
	require.Equal(t, map[corev1.ResourceName]string{"pods": "1", "requests.cpu": "100m", "count/configmaps": "0", "services.nodeports": "0"}, usedOf(c, "q"),
		"neither the dry run nor the one that failed has used anything")
	c.post(podsPath, pod("b", "")).ok()
	c.post(podsPath, pod("c", "")).fails(403, metav1.StatusReasonForbidden, `pods "c" is forbidden: exceeded quota: q, requested: pods=1,requests.cpu=100m, used: pods=2,requests.cpu=200m, limited: pods=2,requests.cpu=250m`)
	c.post(podsPath+"?dryRun=All", pod("c", "")).fails(403, metav1.StatusReasonForbidden, "exceeded quota: q")

	c.patch(podsPath+"/a/resize", strategicPatch, `{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"200m"}}}]}}`).
		fails(403, metav1.StatusReasonForbidden, "exceeded quota: q, requested: requests.cpu=100m, used: requests.cpu=200m, limited: requests.cpu=250m")
	c.patch(podsPath+"/a/resize", strategicPatch, `{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"150m"}}}]}}`).ok()
	require.Equal(t, "250m", usedOf(c, "q")["requests.cpu"])

	const services = "/api/v1/namespaces/default/services"
	c.post(services, `{"metadata":{"name":"s"},"spec":{"ports":[{"port":80}]}}`).ok()
	c.patch(services+"/s", mergePatch, `{"spec":{"type":"NodePort"}}`).ok()
	require.Equal(t, "1", usedOf(c, "q")["services.nodeports"])
	c.post(services, `{"metadata":{"name":"two"},"spec":{"type":"LoadBalancer","ports":[{"port":80}]}}`).
		fails(403, metav1.StatusReasonForbidden, "exceeded quota: q, requested: services.nodeports=1, used: services.nodeports=1, limited: services.nodeports=1")
	c.do("PATCH", "/api/v1/namespaces/default/configmaps/one?fieldManager=m", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}", "Content-Type", applyPatch).ok()
	c.post("/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"two"}}`).fails(403, metav1.StatusReasonForbidden, "exceeded quota: q, requested: count/configmaps=1")
}

// Of two quotas the one that refuses keeps the other from being charged; scopes select.
func TestResourceQuotaScopes(t *testing.T) {
	_, c := start(t)
	makeQuota(c, "all", `"pods":"9"`, `"pods":"0"`, "")
	makeQuota(c, "brief", `"pods":"1"`, `"pods":"0"`, `,"scopes":["Terminating"]`)
	makeQuota(c, "critical", `"pods":"1"`, `"pods":"0"`, `,"scopeSelector":{"matchExpressions":[{"scopeName":"PriorityClass","operator":"In","values":["system-node-critical"]}]}`)
	pod := func(name, more string) answer {
		return c.post(podsPath, `{"metadata":{"name":"`+name+`"},"spec":{"containers":[{"name":"c","image":"i"}]`+more+`}}`)
	}
	pod("usual", "").ok()
	pod("b1", `,"activeDeadlineSeconds":10`).ok()
	pod("b2", `,"activeDeadlineSeconds":10`).fails(403, metav1.StatusReasonForbidden, "exceeded quota: brief")
	pod("c1", `,"priorityClassName":"system-node-critical"`).ok()
	pod("c2", `,"priorityClassName":"system-node-critical"`).fails(403, metav1.StatusReasonForbidden, "exceeded quota: critical")
	c.patch(podsPath+"/usual", mergePatch, `{"spec":{"activeDeadlineSeconds":10}}`).fails(403, metav1.StatusReasonForbidden, "exceeded quota: brief")
	for name, used := range map[string]string{"all": "3", "brief": "1", "critical": "1"} {
		require.Equal(t, used, usedOf(c, name)["pods"], name)
	}
}

// Many who create at the same time, on two servers, get exactly what there is, whatever else fails.
func TestResourceQuotaUnderConcurrency(t *testing.T) {
	const creators, limit = 64, 40
	_, serve := sharedStore(t)
	c, other := serve(), serve()
	makeQuota(c, "q", fmt.Sprintf(`"count/configmaps":"%d"`, limit), `"count/configmaps":"0"`, "")
	makeQuota(c, "z", `"configmaps":"1000"`, `"configmaps":"0"`, "")
	const configMaps = "/api/v1/namespaces/default/configmaps"
	c.post(configMaps, `{"metadata":{"name":"taken"}}`).ok()

	var made, refused atomic.Int64
	var all sync.WaitGroup
	for i := range creators {
		all.Go(func() {
			on := []*client{c, other}[i%2]
			for _, name := range []string{"taken", fmt.Sprintf("c%d", i)} {
				switch a := on.post(configMaps, `{"metadata":{"name":"`+name+`"}}`); a.code {
				case http.StatusCreated:
					made.Add(1)
				case http.StatusForbidden:
					refused.Add(1)
				case http.StatusConflict:
				default:
					t.Errorf("%d: %s", a.code, a.body)
				}
			}
		})
	}
	all.Wait()
	require.EqualValues(t, limit-1, made.Load(), "beside the one that was there")
	require.GreaterOrEqual(t, refused.Load(), int64(creators-limit+1))
	require.Equal(t, "40", usedOf(c, "q")["count/configmaps"])
	require.Equal(t, "40", usedOf(c, "z")["configmaps"], "what one quota refuses, no other is charged with")
}
