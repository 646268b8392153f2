package registry

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// podTemplates keep what workloads have inside them as objects of their own, for controllers from elsewhere.
func podTemplates() *Resource {
	path := field.NewPath("template")
	r := newRow[corev1.PodTemplate, corev1.PodTemplateList](corev1.SchemeGroupVersion, "podtemplates", "PodTemplate")
	r.Strategy = Strategy{
		ReturnDeleted:    true,
		Default:          defaulter(func(t *corev1.PodTemplate) { defaultPodTemplate(&t.Template) }),
		PrepareForCreate: preparer(func(t *corev1.PodTemplate) { dropGated(&t.Template.Spec) }),
		PrepareForUpdate: updatePreparer(func(t, _ *corev1.PodTemplate) { dropGated(&t.Template.Spec) }),
		Validate:         validator(func(t *corev1.PodTemplate) field.ErrorList { return validatePodTemplate(path, &t.Template) }),
		Warnings:         templateWarnings(path, func(t *corev1.PodTemplate) *corev1.PodTemplateSpec { return &t.Template }),
	}
	r.Columns = columns([]string{"Name", "Containers", "Images", "Pod Labels"})
	r.Row = cells(func(t *corev1.PodTemplate, _ time.Time) []any {
		names, images := containerCells(t.Template.Spec.Containers)
		return []any{t.Name, names, images, labels.FormatLabels(t.Template.Labels)}
	})
	return r
}
