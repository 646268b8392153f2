package registry

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// statefulSets. Not yet: validation of volume claim templates and of the counters in a status.
func statefulSets() *Resource {
	r := newRow[appsv1.StatefulSet, appsv1.StatefulSetList](appsv1.SchemeGroupVersion, "statefulsets", "StatefulSet")
	r.ShortNames, r.Categories = []string{"sts"}, []string{"all"}
	r.Strategy = Strategy{
		Default:        defaulter(defaultStatefulSet),
		Validate:       validator(validateStatefulSet),
		ValidateUpdate: updateValidator(validateStatefulSetUpdate),
		Warnings:       warner(templateSpec, func(s *appsv1.StatefulSet) *corev1.PodSpec { return &s.Spec.Template.Spec }),
	}
	r.Subresources = []Subresource{
		scale(func(obj runtime.Object) scaled {
			s := obj.(*appsv1.StatefulSet)
			return scaled{&s.ObjectMeta, &s.Spec.Replicas, s.Status.Replicas, s.Spec.Selector}
		}),
		unjudged(statusOf(r, func(s, old *appsv1.StatefulSet) { s.Spec = old.Spec })),
	}
	r.Columns, r.Row = columns([]string{"Name", "Ready", "Age"}, "Containers", "Images"), cells(statefulSetRow)
	return r
}

func defaultStatefulSet(s *appsv1.StatefulSet) {
	spec := &s.Spec
	defaultPodTemplate(&spec.Template)
	setPointer(&spec.Replicas, 1)
	setPointer(&spec.RevisionHistoryLimit, 10)
	setDefault(&spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	if spec.UpdateStrategy.Type == "" {
		spec.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
		setPointer(&spec.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
	}
	if rolling := spec.UpdateStrategy.RollingUpdate; rolling != nil && spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		setPointer(&rolling.Partition, 0)
		setPointer(&rolling.MaxUnavailable, intstr.FromInt32(1))
	}
	setPointer(&spec.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	setDefault(&spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	setDefault(&spec.PersistentVolumeClaimRetentionPolicy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	for i := range spec.VolumeClaimTemplates {
		claim := &spec.VolumeClaimTemplates[i]
		setDefault(&claim.APIVersion, "v1")
		setDefault(&claim.Kind, "PersistentVolumeClaim")
		defaultClaim(claim)
	}
}

func validateStatefulSet(s *appsv1.StatefulSet) field.ErrorList {
	spec := &s.Spec
	faults := notNegative(specPath.Child("replicas"), *spec.Replicas)
	faults = append(faults, notNegative(specPath.Child("minReadySeconds"), spec.MinReadySeconds)...)
	faults = append(faults, oneOf(specPath.Child("podManagementPolicy"), spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement)...)
	faults = append(faults, oneOf(specPath.Child("updateStrategy", "type"), spec.UpdateStrategy.Type, appsv1.OnDeleteStatefulSetStrategyType, appsv1.RollingUpdateStatefulSetStrategyType)...)
	if rolling := spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Partition != nil {
		faults = append(faults, notNegative(specPath.Child("updateStrategy", "rollingUpdate", "partition"), *rolling.Partition)...)
	}
	return append(faults, validateWorkload("statefulset", spec.Selector, &spec.Template)...)
}

// validateStatefulSetUpdate: identity and storage of the pods are settled at the start.
func validateStatefulSetUpdate(s, old *appsv1.StatefulSet) field.ErrorList {
	faults := immutable(specPath.Child("selector"), s.Spec.Selector, old.Spec.Selector)
	faults = append(faults, immutable(specPath.Child("volumeClaimTemplates"), s.Spec.VolumeClaimTemplates, old.Spec.VolumeClaimTemplates)...)
	faults = append(faults, immutable(specPath.Child("serviceName"), s.Spec.ServiceName, old.Spec.ServiceName)...)
	return append(faults, immutable(specPath.Child("podManagementPolicy"), s.Spec.PodManagementPolicy, old.Spec.PodManagementPolicy)...)
}

func statefulSetRow(s *appsv1.StatefulSet, now time.Time) []any {
	names, images := containerCells(s.Spec.Template.Spec.Containers)
	return []any{s.Name, fmt.Sprintf("%d/%d", s.Status.ReadyReplicas, replicas(s.Spec.Replicas)), age(&s.ObjectMeta, now), names, images}
}

// daemonSets. Not yet: validation of the counters in a status.
func daemonSets() *Resource {
	r := newRow[appsv1.DaemonSet, appsv1.DaemonSetList](appsv1.SchemeGroupVersion, "daemonsets", "DaemonSet")
	r.ShortNames, r.Categories = []string{"ds"}, []string{"all"}
	r.Strategy = Strategy{
		Default:          defaulter(defaultDaemonSet),
		PrepareForCreate: preparer(func(d *appsv1.DaemonSet) { setTemplateGeneration(d, 1) }),
		PrepareForUpdate: updatePreparer(countTemplates),
		Validate:         validator(validateDaemonSet),
		Warnings:         warner(templateSpec, func(d *appsv1.DaemonSet) *corev1.PodSpec { return &d.Spec.Template.Spec }),
		ValidateUpdate: updateValidator(func(d, old *appsv1.DaemonSet) field.ErrorList {
			return immutable(specPath.Child("selector"), d.Spec.Selector, old.Spec.Selector)
		}),
	}
	r.Subresources = []Subresource{unjudged(statusOf(r, func(d, old *appsv1.DaemonSet) { d.Spec = old.Spec }))}
	r.Columns = columns(
		[]string{"Name", "Desired:integer", "Current:integer", "Ready:integer", "Up-to-date:integer", "Available:integer", "Node Selector", "Age"},
		"Containers", "Images", "Selector")
	r.Row = cells(daemonSetRow)
	return r
}

func defaultDaemonSet(d *appsv1.DaemonSet) {
	spec := &d.Spec
	defaultPodTemplate(&spec.Template)
	setPointer(&spec.RevisionHistoryLimit, 10)
	setDefault(&spec.UpdateStrategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		setPointer(&spec.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
		setPointer(&spec.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		setPointer(&spec.UpdateStrategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
}

// setTemplateGeneration: a DaemonSet counts the versions of its template in an annotation, which its
// controller writes to the pods. Clients cannot set it.
func setTemplateGeneration(d *appsv1.DaemonSet, n int64) {
	metav1.SetMetaDataAnnotation(&d.ObjectMeta, appsv1.DeprecatedTemplateGeneration, fmt.Sprint(n))
}

func countTemplates(d, old *appsv1.DaemonSet) {
	var n int64
	_, _ = fmt.Sscan(old.Annotations[appsv1.DeprecatedTemplateGeneration], &n) // not a number: start again
	if !apiequality.Semantic.DeepEqual(d.Spec.Template, old.Spec.Template) {
		n++
	}
	setTemplateGeneration(d, n)
}

func validateDaemonSet(d *appsv1.DaemonSet) field.ErrorList {
	faults := validateWorkload("daemonset", d.Spec.Selector, &d.Spec.Template)
	faults = append(faults, notNegative(specPath.Child("minReadySeconds"), d.Spec.MinReadySeconds)...)
	path := specPath.Child("updateStrategy")
	faults = append(faults, oneOf(path.Child("type"), d.Spec.UpdateStrategy.Type, appsv1.OnDeleteDaemonSetStrategyType, appsv1.RollingUpdateDaemonSetStrategyType)...)
	if rolling := d.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.MaxUnavailable != nil && rolling.MaxSurge != nil {
		faults = append(faults, share(path.Child("rollingUpdate", "maxUnavailable"), rolling.MaxUnavailable)...)
		faults = append(faults, share(path.Child("rollingUpdate", "maxSurge"), rolling.MaxSurge)...)
		switch unavailable, surge := isNought(rolling.MaxUnavailable), isNought(rolling.MaxSurge); {
		case unavailable && surge:
			faults = append(faults, field.Invalid(path.Child("rollingUpdate"), rolling.MaxUnavailable, "cannot be 0 when maxSurge is 0"))
		case !unavailable && !surge:
			faults = append(faults, field.Invalid(path.Child("rollingUpdate", "maxSurge"), rolling.MaxSurge, "may not be set when maxUnavailable is non-zero"))
		}
	}
	return faults
}

func daemonSetRow(d *appsv1.DaemonSet, now time.Time) []any {
	names, images := containerCells(d.Spec.Template.Spec.Containers)
	s := d.Status
	return []any{
		d.Name, int64(s.DesiredNumberScheduled), int64(s.CurrentNumberScheduled), int64(s.NumberReady), int64(s.UpdatedNumberScheduled), int64(s.NumberAvailable),
		labels.FormatLabels(d.Spec.Template.Spec.NodeSelector), age(&d.ObjectMeta, now), names, images, metav1.FormatLabelSelector(d.Spec.Selector),
	}
}

// controllerRevisions are the history of stateful and daemon sets.
func controllerRevisions() *Resource {
	r := newRow[appsv1.ControllerRevision, appsv1.ControllerRevisionList](appsv1.SchemeGroupVersion, "controllerrevisions", "ControllerRevision")
	r.Strategy = Strategy{
		NoGeneration: true,
		Validate: validator(func(c *appsv1.ControllerRevision) field.ErrorList {
			faults := notNegative(field.NewPath("revision"), c.Revision)
			if len(c.Data.Raw) == 0 && c.Data.Object == nil {
				faults = append(faults, field.Required(field.NewPath("data"), "data is mandatory"))
			}
			return faults
		}),
		ValidateUpdate: updateValidator(func(c, old *appsv1.ControllerRevision) field.ErrorList {
			return immutable(field.NewPath("data"), c.Data, old.Data)
		}),
	}
	r.Columns = columns([]string{"Name", "Controller", "Revision", "Age"})
	r.Row = cells(func(c *appsv1.ControllerRevision, now time.Time) []any {
		owner := none
		if ref := metav1.GetControllerOf(c); ref != nil {
			group, _, _ := strings.Cut(ref.APIVersion, "/")
			owner = fmt.Sprintf("%s.%s/%s", strings.ToLower(ref.Kind), group, ref.Name)
		}
		return []any{c.Name, owner, c.Revision, age(&c.ObjectMeta, now)}
	})
	return r
}

// replicationControllers are what there was before ReplicaSets. Not yet: validation of the counters in a status.
func replicationControllers() *Resource {
	r := newRow[corev1.ReplicationController, corev1.ReplicationControllerList](corev1.SchemeGroupVersion, "replicationcontrollers", "ReplicationController")
	r.ShortNames, r.Categories, r.Prefix = []string{"rc"}, []string{"all"}, "/registry/controllers"
	r.Strategy = Strategy{Default: defaulter(defaultReplicationController), Validate: validator(validateReplicationController)}
	r.Subresources = []Subresource{
		scale(func(obj runtime.Object) scaled {
			rc := obj.(*corev1.ReplicationController)
			return scaled{&rc.ObjectMeta, &rc.Spec.Replicas, rc.Status.Replicas, metav1.SetAsLabelSelector(rc.Spec.Selector)}
		}),
		unjudged(statusOf(r, func(rc, old *corev1.ReplicationController) { rc.Spec = old.Spec })),
	}
	r.Columns = columns([]string{"Name", "Desired:integer", "Current:integer", "Ready:integer", "Age"}, "Containers", "Images", "Selector")
	r.Row = cells(func(rc *corev1.ReplicationController, now time.Time) []any {
		var names, images string
		if rc.Spec.Template != nil {
			names, images = containerCells(rc.Spec.Template.Spec.Containers)
		}
		return []any{rc.Name, int64(replicas(rc.Spec.Replicas)), int64(rc.Status.Replicas), int64(rc.Status.ReadyReplicas), age(&rc.ObjectMeta, now),
			names, images, labels.FormatLabels(rc.Spec.Selector)}
	})
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

func validateReplicationController(rc *corev1.ReplicationController) field.ErrorList {
	faults := notNegative(specPath.Child("replicas"), *rc.Spec.Replicas)
	if len(rc.Spec.Selector) == 0 {
		faults = append(faults, field.Required(specPath.Child("selector"), ""))
	}
	if rc.Spec.Template == nil {
		return append(faults, field.Required(specPath.Child("template"), ""))
	}
	if len(rc.Spec.Selector) == 0 {
		return faults
	}
	return append(faults, validateWorkload("replicationcontroller", metav1.SetAsLabelSelector(rc.Spec.Selector), rc.Spec.Template)...)
}
