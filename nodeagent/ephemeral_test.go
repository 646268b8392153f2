package nodeagent_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestEphemeralContainer: a container that is added to a pod runs in it, is in its status, and does not change how the pod is.
func TestEphemeralContainer(t *testing.T) {
	n := startNode(t)
	n.pod("p", nil)
	pod := n.await("p", "ready", isReady)
	_, err := n.client.CoreV1().Pods(pod.Namespace).Patch(t.Context(), pod.Name, types.StrategicMergePatchType,
		[]byte(`{"spec":{"ephemeralContainers":[{"name":"look","image":"example.com/tools:1"}]}}`), metav1.PatchOptions{}, "ephemeralcontainers")
	require.NoError(t, err)
	pod = n.await("p", "looked at", func(pod *corev1.Pod) bool {
		s := pod.Status.EphemeralContainerStatuses
		return len(s) == 1 && s[0].Name == "look" && s[0].State.Running != nil
	})
	require.True(t, isReady(pod))
	require.Equal(t, "example.com/tools:1", pod.Status.EphemeralContainerStatuses[0].Image)
	require.Equal(t, int32(0), pod.Status.ContainerStatuses[0].RestartCount)
}
