package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Operation is what kind of write it is.
type Operation string

// The operations, by their names in webhooks and policies.
const (
	Create Operation = "CREATE"
	Update Operation = "UPDATE"
	Delete Operation = "DELETE"
)

// Request is one write.
type Request struct {
	Operation   Operation
	Resource    schema.GroupVersionResource
	Subresource string
	Namespace   string // empty for cluster-scoped resources
	Name        string
	User        authenticationv1.UserInfo
	DryRun      bool

	Object runtime.Object // as it will be; nil when it is deleted. Mutators change it.
	Old    runtime.Object // as it is; nil when it is created

	// Warn adds a text to the Warning headers of the answer.
	Warn func(text string)

	// lists are those that this request has asked for: a consistent list costs a question to the other members of the store.
	lists map[schema.GroupVersionResource][]runtime.Object
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

// Objects is what plugins look up in the cluster.
type Objects interface {
	// Get returns an object; the error is an API status error, NotFound if there is none.
	Get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (runtime.Object, error)
	// List returns all objects of a namespace, or of the cluster if it is empty.
	List(ctx context.Context, resource schema.GroupVersionResource, namespace string) ([]runtime.Object, error)
}

// named is a plugin with its name, by which it can be switched off.
type named struct {
	name   string
	plugin any // a Mutator, a Validator, or both
}

// Builtin returns the plugins in the order in which they run, but for those that are named in disabled. The error is a
// name in it that no plugin has.
func Builtin(objects Objects, disabled []string) (*Chain, error) {
	all := []named{
		{"ServiceAccount", serviceAccount{objects}},
		{"LimitRanger", limitRanger{objects}},
		{"Priority", priority{objects}},
		{"DefaultTolerationSeconds", defaultTolerationSeconds{}},
		{"RuntimeClass", runtimeClass{objects}},
		{"DefaultStorageClass", defaultStorageClass{objects}},
		{"DefaultIngressClass", defaultIngressClass{objects}},
		{"NodeRestriction", nodeRestriction{}},
	}
	c := &Chain{}
	for _, p := range all {
		if slices.Contains(disabled, p.name) {
			continue
		}
		c.names = append(c.names, p.name)
		if m, ok := p.plugin.(Mutator); ok {
			c.mutators = append(c.mutators, m)
		}
		if v, ok := p.plugin.(Validator); ok {
			c.validators = append(c.validators, v)
		}
	}
	for _, name := range disabled {
		if !slices.ContainsFunc(all, func(p named) bool { return p.name == name }) {
			return nil, fmt.Errorf("there is no admission plugin %q, only %s", name, strings.Join(c.names, ", "))
		}
	}
	return c, nil
}

// Chain is the plugins that are on. It is safe for concurrent use.
type Chain struct {
	names      []string
	mutators   []Mutator
	validators []Validator
}

// Mutate completes the request's object.
func (c *Chain) Mutate(ctx context.Context, r *Request) error {
	for _, m := range c.mutators {
		if err := m.Mutate(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// Validate refuses the request, or does not.
func (c *Chain) Validate(ctx context.Context, r *Request) error {
	for _, v := range c.validators {
		if err := v.Validate(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// newPod returns the pod of a request that creates one, or nil.
func newPod(r *Request) *corev1.Pod {
	if r.Operation != Create || r.Subresource != "" {
		return nil
	}
	pod, _ := r.Object.(*corev1.Pod)
	return pod
}
