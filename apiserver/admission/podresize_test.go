package admission

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestPodResize(t *testing.T) {
	node := &corev1.Node{ObjectMeta: named("n"), Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
		"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Gi"),
	}}}
	p := podResize{&cluster{objects: []runtime.Object{node}}}
	resized := func(on, cpu, memory string) *Request {
		pod := podOn(on)
		pod.Generation = 2
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}
		return write(pod, podOn(on), "resize")
	}
	require.NoError(t, p.Validate(t.Context(), resized("n", "2", "1Gi")))
	require.NoError(t, p.Validate(t.Context(), resized("", "9", "9Gi")), "the scheduler decides")
	forbidden(t, p.Validate(t.Context(), resized("n", "3", "2Gi")),
		"node didn't have enough allocatable resources: cpu, requested: 3000, allocatable: 2000; memory, requested: 2147483648, allocatable: 1073741824")
	forbidden(t, p.Validate(t.Context(), resized("gone", "1", "1Gi")), `node "gone" not found`)
	node.Labels = map[string]string{corev1.LabelOSStable: "windows"}
	forbidden(t, p.Validate(t.Context(), resized("n", "1", "1Gi")), `pod resize is only supported on linux nodes, node "n" is "windows"`)
}
