package registry

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	specPath     = field.NewPath("spec")
	templatePath = field.NewPath("spec", "template")
)

// validatePod judges a pod by itself, on create and on update.
func validatePod(p *corev1.Pod) field.ErrorList {
	annotations := field.NewPath("metadata", "annotations")
	faults := podAnnotations(annotations, p.Annotations, &p.Spec)
	faults = append(faults, validatePodSpec(specPath, &p.Spec, &p.ObjectMeta)...)
	if p.Spec.ServiceAccountName == "" {
		faults = append(faults, tokensOfNobody(p.Spec.Volumes)...)
	}
	if grace := p.Spec.TerminationGracePeriodSeconds; grace != nil {
		faults = append(faults, notNegative(specPath.Child("terminationGracePeriodSeconds"), *grace)...)
	}
	faults = append(faults, trimmedImages(specPath.Child("containers"), p.Spec.Containers)...)
	faults = append(faults, trimmedImages(specPath.Child("initContainers"), p.Spec.InitContainers)...)
	if exists(p) {
		return faults
	}
	if len(p.Spec.EphemeralContainers) > 0 {
		faults = append(faults, field.Forbidden(specPath.Child("ephemeralContainers"), "cannot be set on create"))
	}
	if p.Spec.NodeName != "" && len(p.Spec.SchedulingGates) > 0 {
		faults = append(faults, field.Forbidden(specPath.Child("nodeName"), "cannot be set until all schedulingGates have been cleared"))
	}
	return append(faults, annotatedProfiles(specPath, p.Annotations, &p.Spec)...)
}

// tokensOfNobody: a token is of a service account.
func tokensOfNobody(volumes []corev1.Volume) field.ErrorList {
	var faults field.ErrorList
	for i, v := range volumes {
		if v.Projected == nil {
			continue
		}
		for j, source := range v.Projected.Sources {
			at := specPath.Child("volumes").Index(i).Child("projected", "sources").Index(j)
			faults = append(faults, forbidden(at, "must not be specified when serviceAccountName is not set", part{"serviceAccountToken", source.ServiceAccountToken != nil})...)
		}
	}
	return faults
}

// trimmedImages: pod templates may carry such names, pods may not.
func trimmedImages(path *field.Path, containers []corev1.Container) field.ErrorList {
	var faults field.ErrorList
	for i := range containers {
		faults = append(faults, trimmedImage(path.Index(i), &containers[i])...)
	}
	return faults
}

func trimmedImage(path *field.Path, c *corev1.Container) field.ErrorList {
	if strings.TrimSpace(c.Image) == c.Image {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("image"), c.Image, "must not have leading or trailing whitespace")}
}

// validateEphemeralUpdate: debugging containers may be added, not changed or taken away.
func validateEphemeralUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	p, was := obj.(*corev1.Pod), old.(*corev1.Pod)
	path := specPath.Child("ephemeralContainers")
	faults := validatePodSpec(specPath, &p.Spec, &p.ObjectMeta)
	now := map[string]*corev1.EphemeralContainer{}
	for i := range p.Spec.EphemeralContainers {
		now[p.Spec.EphemeralContainers[i].Name] = &p.Spec.EphemeralContainers[i]
	}
	for i := range was.Spec.EphemeralContainers {
		before := &was.Spec.EphemeralContainers[i]
		switch after := now[before.Name]; {
		case after == nil:
			faults = append(faults, field.Forbidden(path, fmt.Sprintf("existing ephemeral containers %q may not be removed\n", before.Name)))
		case !apiequality.Semantic.DeepEqual(before, after):
			faults = append(faults, field.Forbidden(path, fmt.Sprintf("existing ephemeral containers %q may not be changed\n%v", before.Name, diff.Diff(shown(before), shown(after)))))
		}
	}
	return faults
}
