package admission

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func ownedBy(owner metav1.OwnerReference) *corev1.Pod {
	pod := podOn("")
	pod.OwnerReferences = []metav1.OwnerReference{owner}
	return pod
}

func TestOwnerReferences(t *testing.T) {
	free := podOn("")
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "u"}
	blocking := owner
	blocking.BlockOwnerDeletion = ptr.To(true)
	c := &cluster{}
	p := ownerReferences{c}

	require.NoError(t, p.Validate(t.Context(), write(ownedBy(owner), nil, "")), "who creates an object may say whose it is")
	forbidden(t, p.Validate(t.Context(), write(ownedBy(owner), free, "")), "cannot set an ownerRef on a resource you can't delete: no rule says so")
	forbidden(t, p.Validate(t.Context(), write(free, ownedBy(owner), "")), "cannot set an ownerRef on a resource you can't delete")
	require.NoError(t, p.Validate(t.Context(), write(ownedBy(owner), ownedBy(owner), "")))
	require.NoError(t, p.Validate(t.Context(), write(nil, ownedBy(owner), "")))

	forbidden(t, p.Validate(t.Context(), write(ownedBy(blocking), nil, "")),
		"cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: no rule says so")
	c.allowed = []string{"jane delete pods p"}
	require.NoError(t, p.Validate(t.Context(), write(ownedBy(owner), free, "")))
	forbidden(t, p.Validate(t.Context(), write(ownedBy(blocking), ownedBy(owner), "")), "cannot set blockOwnerDeletion")
	c.allowed = append(c.allowed, "jane update replicasets/finalizers r")
	require.NoError(t, p.Validate(t.Context(), write(ownedBy(blocking), ownedBy(owner), "")))

	blocking.Kind = "Unheard"
	forbidden(t, p.Validate(t.Context(), write(ownedBy(blocking), nil, "")), "cannot find RESTMapping for APIVersion apps/v1 Kind Unheard")
}
