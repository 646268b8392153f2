package apiserver_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAP31_SizeLimits: what client-side apply of a large manifest runs into, what server-side apply does not, and how large the
// data of ConfigMaps and Secrets may be. (The definitions of the case: TestAP31_BigDefinitions.)
func TestAP31_SizeLimits(t *testing.T) {
	_, c := start(t)
	withAnnotation := func(size int) string {
		return configMap("annotated", fmt.Sprintf(`"annotations":{"kubectl.kubernetes.io/last-applied-configuration":%q}`, strings.Repeat("x", size)))
	}
	const keyLength = len("kubectl.kubernetes.io/last-applied-configuration")
	c.post(maps, withAnnotation(256<<10-keyLength+1)).fails(422, metav1.StatusReasonInvalid, "metadata.annotations: Too long: may not be more than 262144 bytes")
	c.post(maps, withAnnotation(256<<10-keyLength)).ok()

	data := func(kind, name, value string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":%q,"metadata":{"name":%q},"data":{"k":%q}}`, kind, name, value)
	}
	const secrets = "/api/v1/namespaces/default/secrets"
	c.post(maps, data("ConfigMap", "full", strings.Repeat("x", 1<<20))).ok()
	c.post(maps, data("ConfigMap", "over", strings.Repeat("x", 1<<20+1))).fails(422, metav1.StatusReasonInvalid, "may not be more than 1048576 bytes")
	bytes := func(n int) string { return base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", n))) }
	c.post(secrets, data("Secret", "full", bytes(1<<20))).ok()
	c.post(secrets, data("Secret", "over", bytes(11<<20/10))).fails(422, metav1.StatusReasonInvalid, "may not be more than 1048576 bytes")

	// Server-side apply of as much as there is in the largest of the definitions, with an owner for each of 10,000 fields.
	var fields strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&fields, "  %s-%05d: %s\n", "a-field-of-a-large-object", i, strings.Repeat("x", 72))
	}
	large := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: large\ndata:\n" + fields.String()
	c.patch(maps+"/large?fieldManager=m", applyPatch, large).ok()
	c.patch(maps+"/large?fieldManager=m", applyPatch, strings.Replace(large, "xxx", "yyy", 1)).ok()
	stored := c.get(maps + "/large").ok()
	require.Greater(t, len(stored.body), 14<<20/10)

	// A value of more than 1.5 MiB, which etcd refuses.
	var rules []string
	for i := range 10_000 {
		rules = append(rules, fmt.Sprintf(`{"verbs":["get"],"apiGroups":["group-%05d.%s"],"resources":["things"]}`, i, strings.Repeat("x", 90)))
	}
	const roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
	role := `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"large"},"rules":[` + strings.Join(rules, ",") + `]}`
	require.Greater(t, len(role), 3<<19)
	c.post(roles, role).ok()
	require.Greater(t, len(c.get(roles+"/large").ok().body), 3<<19)
}
