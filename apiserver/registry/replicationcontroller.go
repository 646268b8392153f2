package registry

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// replicationControllers are what there was before ReplicaSets.
func replicationControllers() *Resource {
	r := newRow[corev1.ReplicationController, corev1.ReplicationControllerList](corev1.SchemeGroupVersion, "replicationcontrollers", "ReplicationController")
	r.ShortNames, r.Categories, r.Prefix = []string{"rc"}, []string{"all"}, "/registry/controllers"
	r.Strategy = Strategy{
		Default:          defaulter(defaultReplicationController),
		PrepareForCreate: preparer(dropGatedOfReplicationController),
		PrepareForUpdate: updatePreparer(func(rc, _ *corev1.ReplicationController) { dropGatedOfReplicationController(rc) }),
		ValidateName:     nameOfReplicationController,
		Validate:         validator(validateReplicationController),
		Warnings:         namingPods(templateWarnings(templatePath, func(rc *corev1.ReplicationController) *corev1.PodTemplateSpec { return rc.Spec.Template })),
		OrphanByDefault:  true,
	}
	r.Subresources = []Subresource{
		scale(func(obj runtime.Object) scaled {
			rc := obj.(*corev1.ReplicationController)
			return scaled{&rc.ObjectMeta, &rc.Spec.Replicas, rc.Status.Replicas, metav1.SetAsLabelSelector(rc.Spec.Selector)}
		}),
		judged(statusOf(r, func(rc, old *corev1.ReplicationController) { rc.Spec = old.Spec }), validateReplicationControllerStatus),
	}
	r.Fields = fieldSet(func(rc *corev1.ReplicationController) fields.Set {
		return fields.Set{"status.replicas": strconv.Itoa(int(rc.Status.Replicas))}
	})
	r.Columns = columns([]string{"Name", "Desired:integer", "Current:integer", "Ready:integer", "Age"}, "Containers", "Images", "Selector")
	r.Row = cells(replicationControllerRow)
	return r
}

func defaultReplicationController(rc *corev1.ReplicationController) {
	setPointer(&rc.Spec.Replicas, 1)
	if rc.Spec.Template == nil {
		return
	}
	defaultPodTemplate(rc.Spec.Template)
	if len(rc.Spec.Selector) == 0 {
		rc.Spec.Selector = labels.Set(rc.Spec.Template.Labels)
	}
	if len(rc.Labels) == 0 {
		rc.Labels = labels.Set(rc.Spec.Template.Labels)
	}
}

// nameOfReplicationController leaves a prefix alone: the name that is made of it is judged.
func nameOfReplicationController(name string, prefix bool) []string {
	if prefix {
		return nil
	}
	return content.IsDNS1123Subdomain(name)
}

func dropGatedOfReplicationController(rc *corev1.ReplicationController) {
	if rc.Spec.Template != nil {
		dropGated(&rc.Spec.Template.Spec)
	}
}

func validateReplicationController(rc *corev1.ReplicationController) field.ErrorList {
	spec := &rc.Spec
	faults := notNegative(specPath.Child("minReadySeconds"), spec.MinReadySeconds)
	if len(spec.Selector) == 0 {
		faults = append(faults, field.Required(specPath.Child("selector"), ""))
	}
	faults = append(faults, notNegative(specPath.Child("replicas"), *spec.Replicas)...)
	path := specPath.Child("template")
	if spec.Template == nil {
		return append(faults, field.Required(path, ""))
	}
	w := workload{metav1.SetAsLabelSelector(spec.Selector), spec.Template, "replicationcontroller", "ReplicationController"}
	if !labels.SelectorFromSet(spec.Selector).Matches(labels.Set(spec.Template.Labels)) { // whatever is no label matches none
		faults = append(faults, field.Invalid(path.Child("metadata", "labels"), spec.Template.Labels, "`selector` does not match template `labels`"))
	}
	faults = append(faults, validatePodTemplate(path, spec.Template)...)
	return append(faults, w.runsForever(path.Child("spec"))...)
}

func validateReplicationControllerStatus(rc *corev1.ReplicationController) field.ErrorList {
	s := &rc.Status
	faults := counters(counter{"replicas", int64(s.Replicas)}, counter{"fullyLabeledReplicas", int64(s.FullyLabeledReplicas)},
		counter{"readyReplicas", int64(s.ReadyReplicas)}, counter{"availableReplicas", int64(s.AvailableReplicas)},
		counter{"observedGeneration", s.ObservedGeneration})
	return append(faults, replicaParts(s.Replicas, s.FullyLabeledReplicas, s.ReadyReplicas, s.AvailableReplicas)...)
}

func replicationControllerRow(rc *corev1.ReplicationController, now time.Time) []any {
	var names, images string
	if rc.Spec.Template != nil {
		names, images = containerCells(rc.Spec.Template.Spec.Containers)
	}
	return []any{rc.Name, int64(replicas(rc.Spec.Replicas)), int64(rc.Status.Replicas), int64(rc.Status.ReadyReplicas), age(&rc.ObjectMeta, now),
		names, images, labels.FormatLabels(rc.Spec.Selector)}
}
