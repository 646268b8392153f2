package nodeauth

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kontiki/apiserver/rbac"
)

const (
	userPrefix = "system:node:"
	groupNodes = "system:nodes"
	nodeRole   = "system:node"
	leaseSpace = corev1.NamespaceNodeLease
)

// NodeOf returns the name of the node that a user is; ok is false for users who are none.
func NodeOf(user rbac.User) (name string, ok bool) {
	name, ok = strings.CutPrefix(user.Name, userPrefix)
	return name, ok && name != "" && slices.Contains(user.Groups, groupNodes)
}

// Objects are what the authorizer looks up to find out what the pods on a node need.
type Objects interface {
	// AnyOn says whether holds is true of one of the pods on a node: of a namespace, or of all if it is empty.
	AnyOn(ctx context.Context, node, namespace string, holds func(*Pod) bool) (bool, error)
	// Volume returns a persistent volume; nil if there is none. It is shared and not to be changed.
	Volume(ctx context.Context, name string) (*corev1.PersistentVolume, error)
	// Volumes returns all persistent volumes. They are shared and not to be changed.
	Volumes(ctx context.Context) ([]*corev1.PersistentVolume, error)
	// NodeOf returns the node that an object names which is made for one node: a volume attachment, a resource slice, a
	// request for a pod's certificate. It is empty if there is no such object.
	NodeOf(ctx context.Context, resource, namespace, name string) (string, error)
}

// question is one node's request that its role allows.
type question struct {
	rbac.Request
	node    string
	objects Objects
}

// Allow decides on a node's request. The reason of a no is empty when the role is what does not allow it.
func Allow(ctx context.Context, node string, r rbac.Request, policy *rbac.Policy, objects Objects) (reason string, ok bool) {
	q := &question{Request: r, node: node, objects: objects}
	// Slices are the one thing that only this function, and not the role, lets a node use.
	if r.Group+"/"+r.Resource != "resource.k8s.io/resourceslices" && !policy.RoleAllows(nodeRole, r) {
		return "", false
	}
	if judge := judges[r.Group+"/"+r.Resource]; judge != nil {
		reason = judge(ctx, q)
	}
	return reason, reason == ""
}

// judges say why not, or nothing, of requests whose answer depends on more than the role.
var judges = map[string]func(context.Context, *question) string{
	"/secrets":                                   judgeSecret,
	"/configmaps":                                neededBy(func(q *question, p *Pod) bool { return slices.Contains(p.needs.configMaps, q.Name) }),
	"/persistentvolumeclaims":                    neededBy(func(q *question, p *Pod) bool { return slices.Contains(p.needs.claims, q.Name) }),
	"resource.k8s.io/resourceclaims":             neededBy(func(q *question, p *Pod) bool { return slices.Contains(p.needs.resourceClaims, q.Name) }),
	"/serviceaccounts":                           neededBy(func(q *question, p *Pod) bool { return p.account == q.Name }), // and tokens of it
	"/persistentvolumes":                         judgeVolume,
	"/pods":                                      judgePod,
	"/nodes":                                     judgeNode,
	"storage.k8s.io/csinodes":                    judgeCSINode,
	"coordination.k8s.io/leases":                 judgeLease,
	"storage.k8s.io/volumeattachments":           ofThisNode,
	"resource.k8s.io/resourceslices":             judgeSlice,
	"certificates.k8s.io/podcertificaterequests": judgeCertificateRequest,
}

func (q *question) unrelated() string {
	return fmt.Sprintf("no relationship found between node '%s' and this object", q.node)
}

func (q *question) reads() bool { return q.Verb == "get" || q.Verb == "list" || q.Verb == "watch" }

// needed says whether the object is needed by a pod on the node.
func (q *question) needed(ctx context.Context, namespace string, needs func(*Pod) bool) bool {
	found, err := q.objects.AnyOn(ctx, q.node, namespace, needs)
	return err == nil && found
}

// neededBy judges objects that pods name. Lists of them are for nobody: a list or watch must name one (metadata.name).
func neededBy(needs func(*question, *Pod) bool) func(context.Context, *question) string {
	return func(ctx context.Context, q *question) string {
		switch {
		case q.Name == "":
			return "No Object name found"
		case q.Namespace == "":
			return "can only read namespaced object of this type"
		case !q.needed(ctx, q.Namespace, func(p *Pod) bool { return needs(q, p) }):
			return q.unrelated()
		}
		return ""
	}
}

// judgeSecret: a secret is needed by a pod, or by a volume of a pod's claim to be mounted.
func judgeSecret(ctx context.Context, q *question) string {
	reason := neededBy(func(q *question, p *Pod) bool { return slices.Contains(p.needs.secrets, q.Name) })(ctx, q)
	if reason == "" || q.Name == "" || q.Namespace == "" {
		return reason
	}
	volumes, err := q.objects.Volumes(ctx)
	if err != nil {
		return reason
	}
	for _, v := range volumes {
		if slices.Contains(secretsOf(v), secretName{q.Namespace, q.Name}) && judgeBound(ctx, q, v) == "" {
			return ""
		}
	}
	return reason
}

func judgeVolume(ctx context.Context, q *question) string {
	volume, err := q.objects.Volume(ctx, q.Name)
	if err != nil || volume == nil {
		return q.unrelated()
	}
	return judgeBound(ctx, q, volume)
}

func judgeBound(ctx context.Context, q *question, v *corev1.PersistentVolume) string {
	claim := v.Spec.ClaimRef
	if claim == nil || !q.needed(ctx, claim.Namespace, func(p *Pod) bool { return slices.Contains(p.needs.claims, claim.Name) }) {
		return q.unrelated()
	}
	return ""
}

// judgePod: a node reads the pods that are on it. What it writes is judged by what is in it, in admission; but that must be on
// the node as well.
func judgePod(ctx context.Context, q *question) string {
	isIt := func(p *Pod) bool { return p.Name == q.Name }
	switch {
	case q.Verb == "list" || q.Verb == "watch":
		if q.SelectsField("spec.nodeName", q.node) || q.Name != "" && q.needed(ctx, q.Namespace, isIt) {
			return ""
		}
		return "can only list/watch pods with spec.nodeName field selector"
	case q.Verb == "create" && q.Subresource == "":
		return ""
	case !q.needed(ctx, q.Namespace, isIt):
		if q.Verb == "get" {
			return q.unrelated()
		}
		return fmt.Sprintf("node '%s' can only change pods that are on it", q.node)
	}
	return ""
}

func judgeNode(_ context.Context, q *question) string {
	switch {
	case q.reads() && q.Name == "":
		return fmt.Sprintf("node '%s' cannot read all nodes, only its own Node object", q.node)
	case q.reads() && q.Name != q.node:
		return fmt.Sprintf("node '%s' cannot read '%s', only its own Node object", q.node, q.Name)
	case q.Verb != "create" && q.Name != q.node:
		return fmt.Sprintf("node '%s' cannot change another node", q.node)
	}
	return ""
}

func judgeLease(_ context.Context, q *question) string {
	switch {
	case q.Namespace != leaseSpace:
		return fmt.Sprintf("can only access leases in the %q system namespace", leaseSpace)
	case q.Verb != "create" && q.Name != q.node: // the name of a new one is in its body: NodeRestriction reads it
		return "can only access node lease with the same name as the requesting node"
	}
	return ""
}

func judgeCSINode(_ context.Context, q *question) string {
	if q.Verb != "create" && q.Name != q.node {
		return "can only access CSINode with the same name as the requesting node"
	}
	return ""
}

// ofThisNode judges objects that are made for one node.
func ofThisNode(ctx context.Context, q *question) string {
	node, err := q.objects.NodeOf(ctx, q.Resource, q.Namespace, q.Name)
	if err != nil || node != q.node {
		return q.unrelated()
	}
	return ""
}

func judgeSlice(ctx context.Context, q *question) string {
	switch q.Verb {
	case "create":
		return "" // NodeRestriction reads whose it is
	case "get", "update", "patch", "delete":
		return ofThisNode(ctx, q)
	case "list", "watch", "deletecollection":
		if q.SelectsField("spec.nodeName", q.node) {
			return ""
		}
		return "can only list/watch/deletecollection resourceslices with nodeName field selector"
	}
	return "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection"
}

func judgeCertificateRequest(ctx context.Context, q *question) string {
	switch {
	case q.Verb == "create":
		return ""
	case q.Verb == "get":
		return ofThisNode(ctx, q)
	case q.SelectsField("spec.nodeName", q.node):
		return ""
	}
	return "can only list/watch podcertificaterequests with nodeName field selector"
}
