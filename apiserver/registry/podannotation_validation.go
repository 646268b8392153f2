package registry

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Annotations of a pod that mean something to Kubernetes: many are from before there was a field.
const (
	seccompOfPod       = "seccomp.security.alpha.kubernetes.io/pod"
	seccompOfContainer = "container.seccomp.security.alpha.kubernetes.io/"
	localProfile       = "localhost/"
)

// podAnnotations judges their values.
func podAnnotations(path *field.Path, annotations map[string]string, s *corev1.PodSpec) field.ErrorList {
	if len(annotations) == 0 {
		return nil
	}
	var faults field.ErrorList
	if value, ok := annotations[corev1.MirrorPodAnnotationKey]; ok && s.NodeName == "" {
		faults = append(faults, field.Invalid(path.Key(corev1.MirrorPodAnnotationKey), value, "must set spec.nodeName if mirror pod annotation is set"))
	}
	if cost, ok := annotations[corev1.PodDeletionCost]; ok {
		// The text is that of the number: a sign or zeros before it are refused.
		if n, err := strconv.ParseInt(cost, 10, 32); err != nil || strconv.Itoa(int(n)) != cost {
			faults = append(faults, field.Invalid(path.Key(corev1.PodDeletionCost), cost, "must be a 32bit integer"))
		}
	}
	for key, value := range inOrder(annotations) {
		if key == seccompOfPod || strings.HasPrefix(key, seccompOfContainer) {
			faults = append(faults, seccompAnnotation(path.Child(key), value)...)
		}
	}
	for key, value := range inOrder(annotations) {
		container, ok := strings.CutPrefix(key, corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix)
		if !ok {
			continue
		}
		if !hasContainer(s, container) {
			faults = append(faults, field.Invalid(path.Key(key), container, "container not found"))
		}
		if value != "" && value != "runtime/default" && value != "unconfined" && !strings.HasPrefix(value, localProfile) {
			faults = append(faults, field.Invalid(path.Key(key), value, "invalid AppArmor profile name: "+strconv.Quote(value)))
		}
	}
	return faults
}

func hasContainer(s *corev1.PodSpec, name string) bool {
	for _, c := range everyContainer(s) {
		if c.Name == name {
			return true
		}
	}
	return false
}

func seccompAnnotation(path *field.Path, value string) field.ErrorList {
	switch {
	case value == "runtime/default", value == "docker/default", value == "unconfined":
		return nil
	case strings.HasPrefix(value, localProfile):
		return descendingPath(path, strings.TrimPrefix(value, localProfile))
	}
	return field.ErrorList{field.Invalid(path, value, "must be a valid seccomp profile")}
}

// A profile is what is said of a container twice, in a field and in an annotation.
type profile struct {
	sort  string // seccomp, apparmor
	kind  string // of the field: Unconfined, RuntimeDefault, Localhost
	local *string
}

// annotatedProfiles: where an old annotation says what a field says, they agree.
func annotatedProfiles(path *field.Path, annotations map[string]string, s *corev1.PodSpec) field.ErrorList {
	if len(annotations) == 0 {
		return nil
	}
	var faults field.ErrorList
	compare := func(path *field.Path, key string, p profile) {
		if text, ok := annotations[key]; ok {
			faults = append(faults, p.agrees(path, text)...)
		}
	}
	var ofPod *corev1.AppArmorProfile
	if c := s.SecurityContext; c != nil {
		ofPod = c.AppArmorProfile
		if p := c.SeccompProfile; p != nil {
			compare(path.Child("securityContext", "seccompProfile"), seccompOfPod, profile{"seccomp", string(p.Type), p.LocalhostProfile})
		}
	}
	visitContainers(path, s, func(path *field.Path, c *corev1.Container) {
		if sc := c.SecurityContext; sc != nil && sc.SeccompProfile != nil {
			p := sc.SeccompProfile
			compare(path.Child("securityContext", "seccompProfile"), seccompOfContainer+c.Name, profile{"seccomp", string(p.Type), p.LocalhostProfile})
		}
	})
	if s.OS != nil && s.OS.Name == corev1.Windows {
		return faults
	}
	visitContainers(path, s, func(path *field.Path, c *corev1.Container) {
		p := ofPod
		if sc := c.SecurityContext; sc != nil && sc.AppArmorProfile != nil {
			p = sc.AppArmorProfile
		}
		if p != nil {
			compare(path.Child("securityContext", "appArmorProfile"), corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+c.Name,
				profile{"apparmor", string(p.Type), p.LocalhostProfile})
		}
	})
	return faults
}

func (p profile) agrees(path *field.Path, text string) field.ErrorList {
	other := field.ErrorList{field.Forbidden(path.Child("type"), p.sort+" type in annotation and field must match")}
	switch p.kind {
	case "Unconfined":
		if text != "unconfined" {
			return other
		}
	case "RuntimeDefault":
		if text != "runtime/default" && !(p.sort == "seccomp" && text == "docker/default") {
			return other
		}
	case "Localhost":
		name, ok := strings.CutPrefix(text, localProfile)
		if !ok {
			return other
		}
		if p.local == nil || *p.local != name {
			return field.ErrorList{field.Forbidden(path.Child("localhostProfile"), p.sort+" profile in annotation and field must match")}
		}
	}
	return nil
}

// podAnnotationUpdates: what the node agent reads when a pod starts does not change.
func podAnnotationUpdates(path *field.Path, now, was map[string]string) field.ErrorList {
	var faults field.ErrorList
	fixed := func(key string) (what string, ok bool) {
		switch {
		case key == corev1.MirrorPodAnnotationKey:
			return "mirror pod annotation", true
		case strings.HasPrefix(key, corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix):
			return "AppArmor annotations", true
		}
		return "", false
	}
	for key, value := range inOrder(was) {
		if is, ok := now[key]; ok && is == value {
			continue
		}
		if what, ok := fixed(key); ok {
			faults = append(faults, field.Forbidden(path.Key(key), "may not remove or update "+what))
		}
	}
	for key := range inOrder(now) {
		if _, ok := was[key]; ok {
			continue
		}
		if what, ok := fixed(key); ok {
			faults = append(faults, field.Forbidden(path.Key(key), "may not add "+what))
		}
	}
	return faults
}
