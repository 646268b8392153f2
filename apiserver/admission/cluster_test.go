package admission

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// cluster is what a plugin finds, for tests of its decisions: objects in a slice, and who may do what as sentences
// ("jane approve signers example.com/*"). The server's own is tested with the plugins in package apiserver.
type cluster struct {
	objects []runtime.Object
	allowed []string
}

var _ Cluster = &cluster{}

func (c *cluster) Get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (runtime.Object, error) {
	all, err := c.List(ctx, resource, namespace)
	if err != nil {
		return nil, err
	}
	for _, o := range all {
		if m, _ := meta.Accessor(o); m.GetName() == name {
			return o, nil
		}
	}
	return nil, apierrors.NewNotFound(resource.GroupResource(), name)
}

func (c *cluster) List(_ context.Context, resource schema.GroupVersionResource, namespace string) ([]runtime.Object, error) {
	var out []runtime.Object
	for _, o := range c.objects {
		m, err := meta.Accessor(o)
		if err != nil {
			return nil, err
		}
		if kind := kindOf(o); pluralOf(kind) == resource && (namespace == "" || m.GetNamespace() == namespace) {
			out = append(out, o)
		}
	}
	return out, nil
}

func (c *cluster) Allowed(_ context.Context, user authenticationv1.UserInfo, action authorizationv1.ResourceAttributes) (bool, string) {
	resource := action.Resource
	if action.Subresource != "" {
		resource += "/" + action.Subresource
	}
	return slices.Contains(c.allowed, user.Username+" "+action.Verb+" "+resource+" "+action.Name), "no rule says so"
}

func (c *cluster) ResourceOf(kind schema.GroupVersionKind) (schema.GroupVersionResource, bool, bool) {
	return pluralOf(kind), kind.Kind != "Node", scheme.Scheme.Recognizes(kind)
}

func pluralOf(kind schema.GroupVersionKind) schema.GroupVersionResource {
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return plural
}

func kindOf(obj runtime.Object) schema.GroupVersionKind {
	kinds, _, err := scheme.Scheme.ObjectKinds(obj)
	if err != nil {
		panic(err)
	}
	return kinds[0]
}

// write is a request of jane's to put obj in the place of old, which is nil when obj is created; obj is nil when old is
// deleted.
func write(obj, old runtime.Object, subresource string) *Request {
	r := &Request{
		Operation: Update, Subresource: subresource, User: authenticationv1.UserInfo{Username: "jane"}, Object: obj, Old: old,
		Warn: func(string) {}, Annotate: func(string, string) {},
	}
	shown := obj
	if old == nil {
		r.Operation = Create
	}
	if obj == nil {
		r.Operation, shown = Delete, old
	}
	m, err := meta.Accessor(shown)
	if err != nil {
		panic(err)
	}
	r.Kind = kindOf(shown)
	r.Resource, r.Namespace, r.Name = pluralOf(r.Kind), m.GetNamespace(), m.GetName()
	return r
}

func forbidden(t *testing.T, err error, message string) {
	t.Helper()
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, message)
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

func inNS(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ns", Name: name} }

func podOn(node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: inNS("p"), Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
}
