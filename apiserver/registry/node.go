package registry

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
)

// nodes. A node brings its status along when it registers.
func nodes(options Options) *Resource {
	r := newRow[corev1.Node, corev1.NodeList](corev1.SchemeGroupVersion, "nodes", "Node")
	r.ShortNames = []string{"no"}
	r.Namespaced = false
	r.Prefix = "/registry/minions"
	r.Strategy = Strategy{
		NoGeneration:       true,
		KeepStatusOnCreate: true,
		Default:            defaulter(defaultNode),
		Validate:           validator(validateNode),
		ValidateUpdate:     updateValidator(validateNodeUpdate),
		Claims:             func(obj runtime.Object) []string { return podCIDRClaims(obj.(*corev1.Node)) },
	}
	if options.ClusterCIDR.IsValid() {
		r.Strategy.Allocate = allocatePodCIDR(options.ClusterCIDR)
	}
	r.Subresources = []Subresource{
		connectTo("proxy", "NodeProxyOptions", "create", "delete", "get", "patch", "update"),
		statusOf(r, func(n, old *corev1.Node) { n.Spec = old.Spec }),
	}
	r.Fields = fieldSet(func(n *corev1.Node) fields.Set {
		return fields.Set{"spec.unschedulable": strconv.FormatBool(n.Spec.Unschedulable)}
	})
	r.Columns, r.Row = nodeColumns, cells(nodeRow)
	return r
}

// defaultNode: what a node does not set aside is allocatable.
func defaultNode(n *corev1.Node) {
	if n.Status.Allocatable == nil && n.Status.Capacity != nil {
		n.Status.Allocatable = n.Status.Capacity.DeepCopy()
	}
}

func podCIDRClaims(n *corev1.Node) []string {
	cidrs := n.Spec.PodCIDRs
	if len(cidrs) == 0 && n.Spec.PodCIDR != "" {
		cidrs = []string{n.Spec.PodCIDR}
	}
	var claims []string
	for _, cidr := range cidrs {
		claims = append(claims, podCIDRClaim(cidr))
	}
	return claims
}

func podCIDRClaim(cidr string) string { return "/kontiki/claims/podcidr/" + cidr }

// allocatePodCIDR gives a new node that has no pod CIDR the first free piece of cluster. Kubernetes
// does this in a controller; as a claim in the node's own transaction it cannot race.
// Not yet: dual stack (one more CIDR of the other family).
func allocatePodCIDR(cluster netip.Prefix) func(context.Context, runtime.Object, runtime.Object, func(string) bool) error {
	bits := 24
	if cluster.Addr().Is6() {
		bits = 64
	}
	return func(_ context.Context, obj, old runtime.Object, taken func(string) bool) error {
		n := obj.(*corev1.Node)
		if old != nil || n.Spec.PodCIDR != "" {
			return nil
		}
		for piece := range pieces(cluster, bits) {
			if cidr := piece.String(); !taken(podCIDRClaim(cidr)) {
				n.Spec.PodCIDR, n.Spec.PodCIDRs = cidr, []string{cidr}
				return nil
			}
		}
		return apierrors.NewInternalError(fmt.Errorf("no free pod CIDR: every /%d of %v is taken", bits, cluster))
	}
}
