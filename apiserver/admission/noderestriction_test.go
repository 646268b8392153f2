package admission

import (
	"testing"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// asNode makes the request that of node n.
func asNode(r *Request) *Request {
	r.User.Username, r.User.Groups = "system:node:n", []string{"system:nodes"}
	return r
}

func mirror(change func(*corev1.Pod)) *corev1.Pod {
	pod := podOn("n")
	pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "u", Controller: ptr.To(true)}}
	change(pod)
	return pod
}

func node(name string, labels map[string]string, taints ...corev1.Taint) *corev1.Node {
	n := &corev1.Node{ObjectMeta: named(name), Spec: corev1.NodeSpec{Taints: taints}}
	n.Labels, n.UID = labels, "u"
	return n
}

func TestNodeRestriction(t *testing.T) {
	onOther := podOn("m")
	onOther.Name = "other"
	p := nodeRestriction{&cluster{objects: []runtime.Object{node("n", nil), podOn("n"), onOther}}}
	connected := asNode(&Request{Operation: Connect, Resource: pods, Subresource: "exec", Namespace: "ns", Name: "p", Object: &corev1.PodExecOptions{}})
	evict := func(name string) *Request {
		r := asNode(write(&policyv1.Eviction{ObjectMeta: inNS(name)}, nil, "eviction"))
		r.Resource = pods
		return r
	}
	labelled := podOn("n")
	labelled.Labels = map[string]string{"a": "b"}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: inNS("c")}
	grown, other := claim.DeepCopy(), claim.DeepCopy()
	grown.Status.Capacity = corev1.ResourceList{"storage": resource.MustParse("1Gi")}
	other.Status.Phase = corev1.ClaimLost
	lease := func(name string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: name}}
	}
	taint := corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoSchedule}
	for message, requests := range map[string][]*Request{
		"": {
			asNode(write(node("n", map[string]string{corev1.LabelHostname: "h", "node.kubernetes.io/x": "", "disk": "ssd"}, taint), nil, "")),
			asNode(write(nil, node("n", nil), "")), asNode(write(mirror(func(*corev1.Pod) {}), nil, "")), asNode(write(nil, podOn("n"), "")),
			asNode(write(podOn("n"), podOn("n"), "status")), evict("p"), asNode(write(grown, claim, "status")), asNode(write(lease("n"), nil, "")),
			asNode(write(nil, lease("n"), "")), write(nil, podOn("m"), ""), write(node("m", nil, taint), node("m", nil), ""),
		},
		`node "n" is not allowed to modify node "m"`:         {asNode(write(node("m", nil), nil, "")), asNode(write(nil, node("m", nil), "")), asNode(write(node("m", nil), node("m", nil), "status"))},
		`node "n" is not allowed to modify taints`:           {asNode(write(node("n", nil, taint), node("n", nil), ""))},
		"is not allowed to modify labels: a.kubernetes.io/b": {asNode(write(node("n", map[string]string{"a.kubernetes.io/b": ""}), node("n", nil), "")), asNode(write(node("n", nil), node("n", map[string]string{"a.kubernetes.io/b": ""}), ""))},
		`node "n" is not allowed to set the following labels: node-restriction.kubernetes.io/x, node-role.kubernetes.io/control-plane`: {
			asNode(write(node("n", map[string]string{"node-role.kubernetes.io/control-plane": "", "node-restriction.kubernetes.io/x": ""}), nil, "")),
		},
		"can only create mirror pods":                                    {asNode(write(podOn("n"), nil, ""))},
		`node "n" can only create pods with spec.nodeName set to itself`: {asNode(write(mirror(func(p *corev1.Pod) { p.Spec.NodeName = "m" }), nil, ""))},
		"with an owner reference set to itself":                          {asNode(write(mirror(func(p *corev1.Pod) { p.OwnerReferences = nil }), nil, "")), asNode(write(mirror(func(p *corev1.Pod) { p.OwnerReferences[0].Name = "m" }), nil, ""))},
		"with a single owner reference":                                  {asNode(write(mirror(func(p *corev1.Pod) { p.OwnerReferences = append(p.OwnerReferences, p.OwnerReferences[0]) }), nil, ""))},
		"with a controller owner reference":                              {asNode(write(mirror(func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil }), nil, ""))},
		"must not set blockOwnerDeletion":                                {asNode(write(mirror(func(p *corev1.Pod) { p.OwnerReferences[0].BlockOwnerDeletion = ptr.To(true) }), nil, ""))},
		"node n UID mismatch: expected v got u":                          {asNode(write(mirror(func(p *corev1.Pod) { p.OwnerReferences[0].UID = "v" }), nil, ""))},
		"can not create pods that reference a service account":           {asNode(write(mirror(func(p *corev1.Pod) { p.Spec.ServiceAccountName = "a" }), nil, ""))},
		`node "n" can only delete pods with spec.nodeName set to itself`: {asNode(write(nil, podOn("m"), ""))},
		"node n can only evict pods with spec.nodeName set to itself":    {evict("other")},
		"can only update pod status for pods with spec.nodeName":         {asNode(write(podOn("m"), podOn("m"), "status"))},
		"cannot update labels through pod status":                        {asNode(write(labelled, podOn("n"), "status"))},
		`unexpected operation "UPDATE"`:                                  {asNode(write(labelled, podOn("n"), ""))},
		`unexpected pod subresource "exec"`:                              {connected},
		"may only update PVC status":                                     {asNode(write(grown, claim, ""))},
		"is not allowed to update fields other than":                     {asNode(write(other, claim, "status"))},
		"can only access its own lease":                                  {asNode(write(lease("m"), nil, "")), asNode(write(nil, lease("m"), ""))},
		"can only access its own CSINode":                                {asNode(write(nil, &storagev1.CSINode{ObjectMeta: named("m")}, ""))},
	} {
		for _, r := range requests {
			err := p.Validate(t.Context(), r)
			if message == "" {
				require.NoError(t, err)
				continue
			}
			forbidden(t, err, message)
		}
	}
}
