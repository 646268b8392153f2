package registry

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	resourcehelper "k8s.io/component-helpers/resource"
)

// validatePodResources judges requests and limits of a pod as a whole, and that its containers fit into them.
func validatePodResources(path *field.Path, s *corev1.PodSpec, claims map[string]bool) field.ErrorList {
	if s.Resources == nil {
		return nil
	}
	if s.OS != nil && s.OS.Name == corev1.Windows {
		return field.ErrorList{field.Forbidden(path, "may not be set for a windows pod")}
	}
	var faults field.ErrorList
	if s.Resources.Claims != nil {
		faults = append(faults, field.Forbidden(path.Child("claims"), "claims may not be set for Resources at pod-level"))
	}
	faults = append(faults, resourceRules{podResource, claims}.validate(path, s.Resources)...)
	pod := &corev1.Pod{Spec: *s}
	for name, sum := range inOrder(resourcehelper.AggregateContainerRequests(pod, resourcehelper.PodResourcesOptions{})) {
		if q, ok := s.Resources.Requests[name]; ok && sum.Cmp(q) > 0 {
			faults = append(faults, field.Invalid(path.Child("requests").Key(string(name)), q.String(),
				fmt.Sprintf("must be greater than or equal to aggregate container requests of %s", sum.String())))
		}
	}
	for name, sum := range inOrder(resourcehelper.AggregateContainerLimits(pod, resourcehelper.PodResourcesOptions{})) {
		if q, ok := s.Resources.Limits[name]; ok && isHugePages(name) && sum.Cmp(q) > 0 {
			faults = append(faults, field.Invalid(path.Child("limits").Key(string(name)), q.String(),
				fmt.Sprintf("must be greater than or equal to aggregate container limits of %s", sum.String())))
		}
	}
	for i, c := range s.Containers {
		for name, limit := range inOrder(c.Resources.Limits) {
			if q, ok := s.Resources.Limits[name]; ok && limit.Cmp(q) > 0 {
				at := path.Child("containers").Index(i).Key(string(name)).Child("limits") // the path that Kubernetes gives
				faults = append(faults, field.Invalid(at, limit.String(), fmt.Sprintf("must be less than or equal to pod limits of %s", q.String())))
			}
		}
	}
	return faults
}

// validatePodClaims returns the names of the claims, for the containers that refer to them.
func validatePodClaims(path *field.Path, claims []corev1.PodResourceClaim, meta *metav1.ObjectMeta) (map[string]bool, field.ErrorList) {
	var faults field.ErrorList
	known, seen := map[string]bool{}, names{}
	for i, c := range claims {
		at := path.Index(i)
		if c.Name != "" {
			known[c.Name] = true
		}
		if meta != nil && meta.Annotations[corev1.MirrorPodAnnotationKey] != "" {
			faults = append(faults, field.Forbidden(field.NewPath(""), "static pods do not support resource claims"))
			continue
		}
		if seen[c.Name] {
			faults = append(faults, field.Duplicate(at.Child("name"), c.Name))
		} else {
			faults = append(faults, dnsLabel(at.Child("name"), c.Name)...)
			seen[c.Name] = c.Name != ""
		}
		switch {
		case c.ResourceClaimName != nil && c.ResourceClaimTemplateName != nil:
			faults = append(faults, field.Invalid(at, shown(c), "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"))
		case c.ResourceClaimName == nil && c.ResourceClaimTemplateName == nil:
			faults = append(faults, field.Invalid(at, shown(c), "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"))
		}
		if n := c.ResourceClaimName; n != nil {
			faults = append(faults, invalid(at.Child("resourceClaimName"), *n, apivalidation.NameIsDNSSubdomain(*n, false))...)
		}
		if n := c.ResourceClaimTemplateName; n != nil {
			faults = append(faults, invalid(at.Child("resourceClaimTemplateName"), *n, apivalidation.NameIsDNSSubdomain(*n, false))...)
		}
	}
	return known, faults
}
