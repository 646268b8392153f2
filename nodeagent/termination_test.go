package nodeagent_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// TestTerminationMessageOutlivesThePod: what a container said when it ended is in each status of the pod, also those that are made
// when the pod has given back its volumes, and by an agent that has not seen it end.
func TestTerminationMessageOutlivesThePod(t *testing.T) {
	n := startNode(t)
	pod := n.pod("p", func(pod *corev1.Pod) {
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		steer(pod, "exit-after", "1ms")
	})
	n.await("p", "over", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodSucceeded })
	dir := filepath.Join(n.dir, "pods", string(pod.UID))
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(dir, "volumes"))
		return os.IsNotExist(err)
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "containers", "main", "0"), []byte("DONE"), 0o600), "as the container would have")
	n.stop()
	n.start()
	n.await("p", "known to have said it", func(pod *corev1.Pod) bool {
		return pod.Status.ContainerStatuses[0].State.Terminated.Message == "DONE"
	})
}
