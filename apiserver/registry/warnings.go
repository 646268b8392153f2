package registry

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// warner lets a row's warnings be found in the pod spec that an object carries.
func warner[T runtime.Object](path *field.Path, find func(T) *corev1.PodSpec) func(context.Context, runtime.Object) []string {
	return func(_ context.Context, obj runtime.Object) []string { return podWarnings(path, find(obj.(T))) }
}

// podWarnings are what Kubernetes accepts and warns of, because it is probably a mistake.
func podWarnings(path *field.Path, s *corev1.PodSpec) []string {
	var out []string
	for _, list := range []struct {
		name       string
		containers []corev1.Container
	}{{"initContainers", s.InitContainers}, {"containers", s.Containers}} {
		for i := range list.containers {
			out = append(out, containerWarnings(path.Child(list.name).Index(i), &list.containers[i])...)
		}
	}
	for i, secret := range s.ImagePullSecrets {
		if secret.Name == "" {
			out = append(out, fmt.Sprintf("%s: invalid empty name %q", path.Child("imagePullSecrets").Index(i).Child("name"), ""))
		}
	}
	if s.TerminationGracePeriodSeconds != nil && *s.TerminationGracePeriodSeconds < 0 {
		out = append(out, fmt.Sprintf("%s: must be >= 0; negative values are invalid and will be treated as 1", path.Child("terminationGracePeriodSeconds")))
	}
	return out
}

// containerWarnings finds entries of one name: a merge patch keeps only the last of them.
func containerWarnings(path *field.Path, c *corev1.Container) []string {
	var out []string
	seen := map[string]bool{}
	for i, e := range c.Env {
		if seen[e.Name] {
			out = append(out, fmt.Sprintf("%s: hides previous definition of %q, which may be dropped when using apply", path.Child("env").Index(i), e.Name))
		}
		seen[e.Name] = true
	}
	ports := map[portKey]int{}
	for i, p := range c.Ports {
		key := portKey{p.ContainerPort, p.Protocol}
		if first, twice := ports[key]; twice {
			out = append(out, fmt.Sprintf("%s: duplicate port definition with %s", path.Child("ports").Index(i), path.Child("ports").Index(first)))
			continue
		}
		ports[key] = i
	}
	return out
}
