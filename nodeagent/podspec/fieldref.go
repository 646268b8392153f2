package podspec

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Facts are what the node knows about a pod beyond its object.
type Facts struct {
	PodIPs, HostIPs []string
	// Allocatable of the node stands in for limits that a container does not set.
	Allocatable corev1.ResourceList
}

// FieldRef evaluates a downward API path of a pod.
func FieldRef(pod *corev1.Pod, facts Facts, path string) (string, error) {
	if name, key, ok := subscript(path); ok {
		switch name {
		case "metadata.labels":
			return pod.Labels[key], nil
		case "metadata.annotations":
			return pod.Annotations[key], nil
		}
		return "", fmt.Errorf("%w: %q", ErrFieldPath, path)
	}
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "metadata.labels":
		return formatMap(pod.Labels), nil
	case "metadata.annotations":
		return formatMap(pod.Annotations), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.hostIP":
		return first(facts.HostIPs), nil
	case "status.hostIPs":
		return strings.Join(facts.HostIPs, ","), nil
	case "status.podIP":
		return first(facts.PodIPs), nil
	case "status.podIPs":
		return strings.Join(facts.PodIPs, ","), nil
	}
	return "", fmt.Errorf("%w: %q", ErrFieldPath, path)
}

// subscript splits "metadata.labels['app']".
func subscript(path string) (name, key string, ok bool) {
	name, rest, ok := strings.Cut(path, "['")
	if !ok || !strings.HasSuffix(rest, "']") {
		return "", "", false
	}
	return name, strings.TrimSuffix(rest, "']"), true
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// formatMap is the text that a downward API volume holds for all labels or annotations.
func formatMap(m map[string]string) string {
	lines := make([]string, 0, len(m))
	for k, v := range m {
		lines = append(lines, fmt.Sprintf("%s=%q", k, v))
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// ResourceFieldRef evaluates a resourceFieldRef: the container's request or limit, in units of the
// divisor, rounded up. Limits that are not set are the node's allocatable amounts.
func ResourceFieldRef(pod *corev1.Pod, facts Facts, container string, ref *corev1.ResourceFieldSelector) (string, error) {
	if ref.ContainerName != "" {
		container = ref.ContainerName
	}
	c := FindContainer(pod, container)
	if c == nil {
		return "", fmt.Errorf("container %s not found", container)
	}
	kind, name, _ := strings.Cut(ref.Resource, ".")
	var amount resource.Quantity
	switch kind {
	case "limits":
		var ok bool
		if amount, ok = c.Resources.Limits[corev1.ResourceName(name)]; !ok {
			amount = facts.Allocatable[corev1.ResourceName(name)]
		}
	case "requests":
		amount = c.Resources.Requests[corev1.ResourceName(name)]
	default:
		return "", fmt.Errorf("%w: %q", ErrFieldPath, ref.Resource)
	}
	return divide(amount, ref.Divisor, name == string(corev1.ResourceCPU)), nil
}

func divide(amount, divisor resource.Quantity, milli bool) string {
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	a, d := amount.Value(), divisor.Value()
	if milli {
		a, d = amount.MilliValue(), divisor.MilliValue()
	}
	return strconv.FormatInt((a+d-1)/d, 10)
}

// EphemeralContainers are the pod's as containers: the API says that they have the same fields.
func EphemeralContainers(pod *corev1.Pod) []corev1.Container {
	var out []corev1.Container
	for i := range pod.Spec.EphemeralContainers {
		out = append(out, corev1.Container(pod.Spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	return out
}

// FindContainer returns the container of that name, of whichever kind, or nil.
func FindContainer(pod *corev1.Pod, name string) *corev1.Container {
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers, EphemeralContainers(pod)} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}
