package apiserver_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A node reads what its pods need and writes what is its own; of everything else, nothing.
func TestNodesSeeWhatTheirPodsNeed(t *testing.T) {
	cluster, c := start(t)
	n1, n2 := clientFor(t, cluster.NodeREST("n1")), clientFor(t, cluster.NodeREST("n2"))
	n1.post("/api/v1/nodes", `{"metadata":{"name":"n1"}}`).ok()
	n1.post("/api/v1/nodes", `{"metadata":{"name":"n3"}}`).fails(403, metav1.StatusReasonForbidden, `node "n1" is not allowed to modify node "n3"`)
	n2.post("/api/v1/nodes", `{"metadata":{"name":"n2","labels":{"x.node-restriction.kubernetes.io/a":"b"}}}`).fails(403, metav1.StatusReasonForbidden, "not allowed to set the following labels")
	n2.post("/api/v1/nodes", `{"metadata":{"name":"n2"}}`).ok()
	const secretsPath = "/api/v1/namespaces/default/secrets"
	for _, name := range []string{"vol", "env", "pull", "other"} {
		c.post(secretsPath, `{"metadata":{"name":"`+name+`"}}`).ok()
	}
	c.post(maps, configMap("conf", "")).ok()
	c.post(accounts, `{"metadata":{"name":"robot"}}`).ok()
	pod := c.post(podsPath, `{"metadata":{"name":"p"},"spec":{"nodeName":"n1","serviceAccountName":"robot","imagePullSecrets":[{"name":"pull"}],
		"volumes":[{"name":"v","secret":{"secretName":"vol"}},{"name":"w","projected":{"sources":[{"configMap":{"name":"conf"}}]}}],
		"containers":[{"name":"c","image":"i","env":[{"name":"E","valueFrom":{"secretKeyRef":{"name":"env","key":"k"}}}]}]}}`).ok().object()
	for _, name := range []string{"vol", "env", "pull"} {
		n1.get(secretsPath + "/" + name).ok()
		n2.get(secretsPath+"/"+name).fails(403, metav1.StatusReasonForbidden, "no relationship found between node 'n2' and this object")
	}
	n1.get(maps + "/conf").ok()
	n1.get(secretsPath+"/other").fails(403, metav1.StatusReasonForbidden, "no relationship found")
	n1.get(secretsPath).fails(403, metav1.StatusReasonForbidden, "No Object name found")
	n1.get(secretsPath + "?fieldSelector=metadata.name%3Dvol").ok()
	n2.get(secretsPath+"?fieldSelector=metadata.name%3Dvol").fails(403, metav1.StatusReasonForbidden, "no relationship found between node 'n2' and this object")
	n1.get("/api/v1/secrets?fieldSelector=metadata.name%3Dvol").fails(403, metav1.StatusReasonForbidden, "can only read namespaced object of this type")
	n1.get(secretsPath+"?fieldSelector=metadata.name!%3Dx").fails(403, metav1.StatusReasonForbidden, "No Object name found")
	n1.put(secretsPath+"/vol", `{"metadata":{"name":"vol"}}`).fails(403, metav1.StatusReasonForbidden, `User "system:node:n1" cannot update resource "secrets"`)

	bound := `{"spec":{"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"p","uid":"` + string(pod.GetUID()) + `"}}}`
	n1.post(accounts+"/robot/token", bound).ok()
	n1.post(accounts+"/robot/token", `{"spec":{}}`).fails(403, metav1.StatusReasonForbidden, "only request tokens bound to a pod")
	n2.post(accounts+"/robot/token", bound).fails(403, metav1.StatusReasonForbidden, "no relationship found between node 'n2' and this object")

	n1.patch(podsPath+"/p/status", mergePatch, `{"status":{"phase":"Running"}}`).ok()
	n2.patch(podsPath+"/p/status", mergePatch, `{"status":{"phase":"Failed"}}`).fails(403, metav1.StatusReasonForbidden, "can only change pods that are on it")
	n2.delete(podsPath+"/p", "").fails(403, metav1.StatusReasonForbidden, "can only change pods that are on it")
	n1.post(podsPath, `{"metadata":{"name":"q"},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i"}]}}`).fails(403, metav1.StatusReasonForbidden, "can only create mirror pods")
	owned := `"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n1","controller":true,"uid":"` + string(n1.get("/api/v1/nodes/n1").ok().object().GetUID()) + `"}],`
	for _, needs := range []string{
		`"containers":[{"name":"c","image":"i","env":[{"name":"E","valueFrom":{"secretKeyRef":{"name":"other","key":"k"}}}]}]`,
		`"containers":[{"name":"c","image":"i","envFrom":[{"secretRef":{"name":"other"}}]}]`,
		`"containers":[{"name":"c","image":"i"}],"imagePullSecrets":[{"name":"other"}]`,
		`"containers":[{"name":"c","image":"i"}],"volumes":[{"name":"v","secret":{"secretName":"other"}}]`,
	} {
		n1.post(podsPath, `{"metadata":{"name":"q",`+owned+`"annotations":{"kubernetes.io/config.mirror":"x"}},"spec":{"nodeName":"n1",`+needs+`}}`).
			fails(403, metav1.StatusReasonForbidden, "can not create pods that reference secrets")
	}
	n1.patch("/api/v1/nodes/n1/status", mergePatch, `{"status":{"phase":"Running"}}`).ok()
	n1.patch("/api/v1/nodes/n2/status", mergePatch, `{"status":{}}`).fails(403, metav1.StatusReasonForbidden, "cannot change another node")
	n1.patch("/api/v1/nodes/n1", mergePatch, `{"spec":{"taints":[{"key":"a","effect":"NoSchedule"}]}}`).fails(403, metav1.StatusReasonForbidden, "not allowed to modify taints")
	const leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
	n1.post(leases, `{"metadata":{"name":"n1"}}`).ok()
	n1.post(leases, `{"metadata":{"name":"n2"}}`).fails(403, metav1.StatusReasonForbidden, "own lease")

	n1.get("/api/v1/pods").fails(403, metav1.StatusReasonForbidden, "can only list/watch pods with spec.nodeName field selector")
	n1.get("/api/v1/pods?fieldSelector=spec.nodeName%3Dn2").fails(403, metav1.StatusReasonForbidden, "can only list/watch pods")
	n1.get("/api/v1/pods?fieldSelector=spec.nodeName!%3Dn1").fails(403, metav1.StatusReasonForbidden, "can only list/watch pods")
	n1.get("/api/v1/pods?fieldSelector=spec.nodeName%3Dn1").ok()
	n1.get(podsPath + "/p").ok()
	n2.get(podsPath+"/p").fails(403, metav1.StatusReasonForbidden, "no relationship found")
	n1.get("/api/v1/nodes/n1").ok()
	n1.get("/api/v1/nodes/n2").fails(403, metav1.StatusReasonForbidden, "node 'n1' cannot read 'n2', only its own Node object")
	n1.get("/api/v1/nodes").ok() // by the role kontiki:node-network: routes to the others
	n1.get("/api/v1/nodes?fieldSelector=metadata.name%3Dn1").ok()
	n1.get("/apis/apps/v1/deployments").fails(403, metav1.StatusReasonForbidden, `User "system:node:n1" cannot list resource "deployments"`)
}
