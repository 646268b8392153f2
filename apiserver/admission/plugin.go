package admission

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Operation is what kind of request it is.
type Operation string

// The operations, by their names in webhooks and policies.
const (
	Create  Operation = "CREATE" // also of what is posted to a subresource: a binding, an eviction, a token request
	Update  Operation = "UPDATE"
	Delete  Operation = "DELETE"
	Connect Operation = "CONNECT" // a stream to a node, a pod or a service: exec, attach, portforward, proxy
)

// Request is one write, or one stream to what runs in the cluster.
type Request struct {
	Operation   Operation
	Kind        schema.GroupVersionKind // of Object, and of Old when there is no Object
	Resource    schema.GroupVersionResource
	Subresource string
	Namespace   string // empty for cluster-scoped resources, but for namespaces, which are in their own
	Name        string
	User        authenticationv1.UserInfo
	DryRun      bool
	Options     runtime.Object // *metav1.CreateOptions, UpdateOptions (of patches too) or DeleteOptions; nil for Connect

	// Object is as it will be; nil when it is deleted. Mutators change it. What is posted to a subresource (Binding,
	// Eviction, TokenRequest), the view that is written through it (Scale) and how a stream is asked for
	// (PodExecOptions) come here as they are.
	Object runtime.Object
	Old    runtime.Object // as it is; nil when it is created, posted or connected to

	// Warn adds a text to the Warning headers of the answer.
	Warn func(text string)
	// Annotate tells the audit event of the request something: why a policy decided as it did. The key is qualified by
	// a domain ("pod-security.kubernetes.io/enforce-policy"); the first value of a key stays.
	Annotate func(key, value string)

	// Beside takes hold of another object, to be changed in the transaction that writes Object. It is for Chargers, which
	// take several in the order of their names; nil in a dry run, and where nothing is written.
	Beside func(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (Companion, error)

	// lists are those that this request has asked for, so that all plugins decide by the same ones.
	lists map[schema.GroupVersionResource][]runtime.Object

	rounds rounds
}

// list returns all objects of a resource in a namespace (of the cluster, if it is empty), the same for all of a request.
func (r *Request) list(ctx context.Context, objects Objects, resource schema.GroupVersionResource, namespace string) ([]runtime.Object, error) {
	if all, ok := r.lists[resource]; ok {
		return all, nil
	}
	all, err := objects.List(ctx, resource, namespace)
	if err != nil {
		return nil, err
	}
	if r.lists == nil {
		r.lists = map[schema.GroupVersionResource][]runtime.Object{}
	}
	r.lists[resource] = all
	return all, nil
}

// Mutator completes objects.
type Mutator interface {
	Mutate(ctx context.Context, r *Request) error
}

// Validator refuses objects. It does not change them.
type Validator interface {
	Validate(ctx context.Context, r *Request) error
}

// Charger writes something beside the request's object: what is used of a quota. It comes last, when nobody else can refuse the
// request any more, and again if what it has taken hold of has changed before it was written.
type Charger interface {
	Charge(ctx context.Context, r *Request) error
}

// Companion is an object that is written together with the request's, or not at all.
type Companion interface {
	// Object is the newest version that the server knows of, shared; nil if there is none any more.
	Object() (runtime.Object, error)
	// Set says what it becomes; without it, it stays.
	Set(next runtime.Object)
}

// Cluster is what plugins ask the server.
type Cluster interface {
	Objects
	// Allowed asks the authorizer; reason may be empty.
	Allowed(ctx context.Context, user authenticationv1.UserInfo, action authorizationv1.ResourceAttributes) (ok bool, reason string)
	// ResourceOf finds the resource whose objects are of a kind.
	ResourceOf(kind schema.GroupVersionKind) (resource schema.GroupVersionResource, namespaced, ok bool)
}

// Objects is what plugins look up in the cluster.
type Objects interface {
	// Get returns an object; the error is an API status error, NotFound if there is none.
	Get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (runtime.Object, error)
	// List returns all objects of a namespace, or of the cluster if it is empty.
	List(ctx context.Context, resource schema.GroupVersionResource, namespace string) ([]runtime.Object, error)
}

// newPod returns the pod of a request that creates one, or nil.
func newPod(r *Request) *corev1.Pod {
	if r.Operation != Create || r.Subresource != "" {
		return nil
	}
	pod, _ := r.Object.(*corev1.Pod)
	return pod
}

// writes says whether the request creates, or with update set also updates, an object of the resource itself.
func (r *Request) writes(resource schema.GroupVersionResource, update bool) bool {
	return r.Resource.GroupResource() == resource.GroupResource() && r.Subresource == "" &&
		(r.Operation == Create || update && r.Operation == Update)
}
