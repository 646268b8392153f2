package nodeproxy

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// container returns the name of the container that is meant: the given one if the pod has it, or the pod's
// only one. The errors are worded as Kubernetes words them.
func container(pod *corev1.Pod, name string) (string, error) {
	main, init, ephemeral := containerNames(pod)
	if name != "" {
		if slices.Contains(main, name) || slices.Contains(init, name) || slices.Contains(ephemeral, name) {
			return name, nil
		}
		return "", apierrors.NewBadRequest(fmt.Sprintf("container %s is not valid for pod %s", name, pod.Name))
	}
	switch len(main) {
	case 0:
		return "", apierrors.NewBadRequest(fmt.Sprintf("a container name must be specified for pod %s", pod.Name))
	case 1:
		return main[0], nil
	}
	text := fmt.Sprintf("a container name must be specified for pod %s, choose one of: %s", pod.Name, choice(main))
	if len(init) > 0 {
		text += fmt.Sprintf(" or one of the init containers: %s", choice(init))
	}
	if len(ephemeral) > 0 {
		text += fmt.Sprintf(" or one of the ephemeral containers: %s", choice(ephemeral))
	}
	return "", apierrors.NewBadRequest(text)
}

func choice(names []string) string { return "[" + strings.Join(names, " ") + "]" }

func containerNames(pod *corev1.Pod) (main, init, ephemeral []string) {
	for i := range pod.Spec.Containers {
		main = append(main, pod.Spec.Containers[i].Name)
	}
	for i := range pod.Spec.InitContainers {
		init = append(init, pod.Spec.InitContainers[i].Name)
	}
	for i := range pod.Spec.EphemeralContainers {
		ephemeral = append(ephemeral, pod.Spec.EphemeralContainers[i].Name)
	}
	return main, init, ephemeral
}
