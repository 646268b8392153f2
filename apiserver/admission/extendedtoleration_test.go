package admission

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestExtendedResourceToleration(t *testing.T) {
	pod := podOn("")
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
		"cpu": resource.MustParse("1"), "hugepages-2Mi": resource.MustParse("2Mi"), "example.com/gpu": resource.MustParse("1"), "example.com/fpga": resource.MustParse("1"),
	}
	want := []corev1.Toleration{{Key: "example.com/fpga", Operator: corev1.TolerationOpExists}, {Key: "example.com/gpu", Operator: corev1.TolerationOpExists}}
	for range 2 { // once
		require.NoError(t, extendedResourceToleration{}.Mutate(t.Context(), write(pod, nil, "")))
		require.Equal(t, want, pod.Spec.Tolerations)
	}
}
