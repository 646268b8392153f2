package admission

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func TestAlwaysPullImages(t *testing.T) {
	pod := podOn("")
	pod.Spec.InitContainers = []corev1.Container{{Name: "i", Image: "i", ImagePullPolicy: corev1.PullNever}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "r"}}}}
	require.NoError(t, alwaysPullImages{}.Mutate(t.Context(), write(pod, nil, "")))
	require.Equal(t, corev1.PullAlways, pod.Spec.InitContainers[0].ImagePullPolicy)
	require.Equal(t, corev1.PullAlways, pod.Spec.Containers[0].ImagePullPolicy)
	require.Equal(t, corev1.PullAlways, pod.Spec.Volumes[0].Image.PullPolicy)

	old := podOn("")
	old.Spec.Containers[0].ImagePullPolicy = corev1.PullNever
	same, other := old.DeepCopy(), old.DeepCopy()
	other.Spec.Containers[0].Image = "other"
	require.NoError(t, alwaysPullImages{}.Mutate(t.Context(), write(same, old, "")))
	require.Equal(t, corev1.PullNever, same.Spec.Containers[0].ImagePullPolicy, "older than the plugin")
	require.NoError(t, alwaysPullImages{}.Mutate(t.Context(), write(other, old, "")))
	require.Equal(t, corev1.PullAlways, other.Spec.Containers[0].ImagePullPolicy)
}
