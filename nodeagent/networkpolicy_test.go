package nodeagent

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

// A Node says that NetworkPolicies cannot be enforced on it, and, if it ever did, when they are again.
func TestPolicyCondition(t *testing.T) {
	events := record.NewFakeRecorder(2)
	a := &Agent{cfg: Config{NodeName: "n1"}, recorder: events}
	_, ok := a.policyCondition(nil)
	require.False(t, ok, "there has been no trouble")
	a.reportPolicies(errors.New("no nft"))
	trouble, ok := a.policyCondition(nil)
	require.True(t, ok)
	require.Equal(t, corev1.ConditionTrue, trouble.Status)
	require.Contains(t, trouble.Message, "no nft")
	require.Contains(t, <-events.Events, "NetworkPolicyNotEnforced")
	a.reportPolicies(nil)
	over, ok := a.policyCondition([]corev1.NodeCondition{trouble})
	require.True(t, ok)
	require.Equal(t, corev1.ConditionFalse, over.Status)
	require.Contains(t, <-events.Events, "NetworkPolicyEnforced")
}
