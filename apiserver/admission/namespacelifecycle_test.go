package admission

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

func TestNamespaceLifecycle(t *testing.T) {
	ns := &corev1.Namespace{ObjectMeta: named("ns")}
	p := namespaceLifecycle{&cluster{objects: []runtime.Object{ns}}}
	require.NoError(t, p.Mutate(t.Context(), write(podOn(""), nil, "")))

	ns.DeletionTimestamp = ptr.To(metav1.Now())
	err := p.Mutate(t.Context(), write(podOn(""), nil, ""))
	forbidden(t, err, `pods "p" is forbidden: unable to create new content in namespace ns because it is being terminated`)
	var status *apierrors.StatusError
	require.True(t, errors.As(err, &status))
	require.Equal(t, corev1.NamespaceTerminatingCause, status.ErrStatus.Details.Causes[0].Type)
	require.NoError(t, p.Mutate(t.Context(), write(podOn(""), podOn(""), "")), "what is there may change")
	require.NoError(t, p.Mutate(t.Context(), write(nil, podOn(""), "")), "and go")
	review := &authorizationv1.LocalSubjectAccessReview{ObjectMeta: inNS("")}
	require.NoError(t, p.Mutate(t.Context(), write(review, nil, "")))

	none := namespaceLifecycle{&cluster{}}
	require.True(t, apierrors.IsNotFound(none.Mutate(t.Context(), write(podOn(""), nil, ""))))

	for _, name := range []string{"default", "kube-system", "kube-public"} {
		forbidden(t, p.Mutate(t.Context(), write(nil, &corev1.Namespace{ObjectMeta: named(name)}, "")), `namespaces "`+name+`" is forbidden: this namespace may not be deleted`)
	}
	require.NoError(t, p.Mutate(t.Context(), write(nil, ns, "")))
}
