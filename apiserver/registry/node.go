package registry

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// nodes. A node brings its status along when it registers.
func nodes(options Options) *Resource {
	r := newRow[corev1.Node, corev1.NodeList](corev1.SchemeGroupVersion, "nodes", "Node")
	r.ShortNames = []string{"no"}
	r.Namespaced = false
	r.Prefix = "/registry/minions"
	r.Strategy = Strategy{
		NoGeneration:       true,
		Warnings:           warnings(nodeWarnings),
		KeepStatusOnCreate: true,
		Default:            defaulter(defaultNode),
		Validate:           validator(validateNode),
		ValidateUpdate:     updateValidator(validateNodeUpdate),
		Claims:             func(obj runtime.Object) []string { return podCIDRClaims(obj.(*corev1.Node)) },
		Allocate:           podCIDRs{options.ClusterCIDR, options.SecondClusterCIDR}.allocate,
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

// defaultNode: what a node does not set aside is allocatable; podCIDR is the first of podCIDRs, and is believed if they
// differ: old node agents know no other.
func defaultNode(n *corev1.Node) {
	if n.Status.Allocatable == nil && n.Status.Capacity != nil {
		n.Status.Allocatable = n.Status.Capacity.DeepCopy()
	}
	switch {
	case n.Spec.PodCIDR == "" && len(n.Spec.PodCIDRs) > 0:
		n.Spec.PodCIDR = n.Spec.PodCIDRs[0]
	case n.Spec.PodCIDR != "" && (len(n.Spec.PodCIDRs) == 0 || n.Spec.PodCIDRs[0] != n.Spec.PodCIDR):
		n.Spec.PodCIDRs = []string{n.Spec.PodCIDR}
	}
}

func podCIDRClaims(n *corev1.Node) []string {
	var claims []string
	for _, cidr := range n.Spec.PodCIDRs {
		claims = append(claims, podCIDRClaim(cidr))
	}
	return claims
}

// podCIDRClaim is the same for every spelling of a prefix.
func podCIDRClaim(cidr string) string {
	if p, err := netip.ParsePrefix(cidr); err == nil {
		cidr = p.Masked().String()
	}
	return "/kontiki/claims/podcidr/" + cidr
}

// podCIDRs gives a new node that has no pod CIDR the first free piece of each range. Kubernetes does
// this in a controller; as a claim in the node's own transaction it cannot race. An invalid
// range gives none.
type podCIDRs struct{ cluster, second netip.Prefix }

func (a podCIDRs) allocate(_ context.Context, obj, old runtime.Object, taken func(string) bool) error {
	n := obj.(*corev1.Node)
	switch {
	case n.Spec.PodCIDR != "":
		return a.check(n, old, taken)
	case old != nil:
		return nil
	}
	for _, cluster := range []netip.Prefix{a.cluster, a.second} {
		if !cluster.IsValid() {
			continue
		}
		cidr, err := freePiece(cluster, taken)
		if err != nil {
			return err
		}
		n.Spec.PodCIDRs = append(n.Spec.PodCIDRs, cidr)
	}
	if len(n.Spec.PodCIDRs) > 0 {
		n.Spec.PodCIDR = n.Spec.PodCIDRs[0]
	}
	return nil
}

// freePiece is the first part of a range for one node that no node has.
func freePiece(cluster netip.Prefix, taken func(string) bool) (string, error) {
	bits := 24
	if cluster.Addr().Is6() {
		bits = 64
	}
	for piece := range pieces(cluster, bits) {
		if cidr := piece.String(); !taken(podCIDRClaim(cidr)) {
			return cidr, nil
		}
	}
	return "", apierrors.NewInternalError(fmt.Errorf("no free pod CIDR: every /%d of %v is taken", bits, cluster))
}

// check refuses a CIDR that the client has chosen and another node holds.
func (a podCIDRs) check(n *corev1.Node, old runtime.Object, taken func(string) bool) error {
	var mine []string
	if old != nil {
		mine = podCIDRClaims(old.(*corev1.Node))
	}
	for _, claim := range podCIDRClaims(n) {
		if !slices.Contains(mine, claim) && taken(claim) {
			fault := field.Invalid(specPath.Child("podCIDRs"), n.Spec.PodCIDRs, "provided CIDR is already allocated")
			return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Node").GroupKind(), n.Name, field.ErrorList{fault})
		}
	}
	return nil
}
