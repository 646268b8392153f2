package controllers

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kontiki/internal/loadbalancer"
)

// TestWhatIsTriedAgain: an address of one IP family hides neither that one of the other is wanting, nor that the API server failed.
func TestWhatIsTriedAgain(t *testing.T) {
	none, failed := &errNoAddress{"PoolExhausted", "every address is taken"}, errors.New("no quorum")
	require.False(t, passes(nil))
	require.False(t, passes(none))
	require.False(t, passes(errors.Join(none)))
	require.True(t, passes(failed))
	require.True(t, passes(errors.Join(none, failed)))

	s := &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}
	require.True(t, waits(s), "nothing has been said yet")
	for reason, want := range map[string]bool{assigned: false, none.reason: true} {
		s.Status.Conditions = []metav1.Condition{{Type: loadbalancer.Assigned, Status: metav1.ConditionTrue, Reason: reason}}
		require.Equal(t, want, waits(s), reason)
	}
}
