package registry

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateStatefulSet(s *appsv1.StatefulSet) field.ErrorList {
	spec := &s.Spec
	var faults field.ErrorList
	if p := spec.PodManagementPolicy; p != appsv1.OrderedReadyPodManagement && p != appsv1.ParallelPodManagement {
		faults = append(faults, field.Invalid(specPath.Child("podManagementPolicy"), p, "must be 'OrderedReady' or 'Parallel'"))
	}
	faults = append(faults, validateStatefulRollout(specPath.Child("updateStrategy"), &spec.UpdateStrategy)...)
	faults = append(faults, validateClaimRetention(specPath.Child("persistentVolumeClaimRetentionPolicy"), spec.PersistentVolumeClaimRetentionPolicy)...)
	isNew := !exists(s)
	if isNew { // immutable: an old one stays as it is
		for i := range spec.VolumeClaimTemplates {
			faults = append(faults, validateClaimSpec(specPath.Child("volumeClaimTemplates").Index(i).Child("spec"), &spec.VolumeClaimTemplates[i].Spec)...)
		}
	}
	faults = append(faults, notNegative(specPath.Child("replicas"), *spec.Replicas)...)
	faults = append(faults, notNegative(specPath.Child("minReadySeconds"), spec.MinReadySeconds)...)
	if spec.Ordinals != nil {
		faults = append(faults, notNegative(specPath.Child("ordinals.start"), spec.Ordinals.Start)...)
	}
	if isNew && spec.ServiceName != "" {
		faults = append(faults, dnsLabel(specPath.Child("serviceName"), spec.ServiceName)...)
	}
	return append(faults, workload{spec.Selector, withClaims(spec), "statefulset", "StatefulSet"}.validate()...)
}

// withClaims is the template as its pods will have it: the controller sets their host names, and puts volumes for
// the claims before those of the template, of which it replaces the ones of the same name.
func withClaims(spec *appsv1.StatefulSetSpec) *corev1.PodTemplateSpec {
	out := spec.Template.DeepCopy()
	out.Spec.Subdomain, out.Spec.Hostname = "", ""
	var volumes []corev1.Volume
	claimed := map[string]bool{}
	for _, c := range spec.VolumeClaimTemplates {
		if claimed[c.Name] {
			continue
		}
		claimed[c.Name] = true
		source := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.Name}}
		volumes = append(volumes, corev1.Volume{Name: c.Name, VolumeSource: source})
	}
	for _, v := range out.Spec.Volumes {
		if !claimed[v.Name] {
			volumes = append(volumes, v)
		}
	}
	out.Spec.Volumes = volumes
	return out
}

func validateStatefulRollout(path *field.Path, s *appsv1.StatefulSetUpdateStrategy) field.ErrorList {
	at := path.Child("rollingUpdate")
	rolling := s.RollingUpdate
	switch {
	case s.Type == appsv1.OnDeleteStatefulSetStrategyType && rolling != nil:
		return field.ErrorList{field.Invalid(at, shown(rolling), "only allowed for updateStrategy 'RollingUpdate'")}
	case s.Type == appsv1.OnDeleteStatefulSetStrategyType:
		return nil
	case s.Type != appsv1.RollingUpdateStatefulSetStrategyType:
		return field.ErrorList{field.Invalid(path, shown(s), "must be 'RollingUpdate' or 'OnDelete'")}
	case rolling == nil:
		return nil
	}
	faults := notNegative(at.Child("partition"), *rolling.Partition)
	most := at.Child("maxUnavailable")
	faults = append(faults, share(most, rolling.MaxUnavailable)...)
	if isNought(rolling.MaxUnavailable) {
		faults = append(faults, field.Invalid(most, rolling.MaxUnavailable, "cannot be 0"))
	}
	return append(faults, atMostAll(most, rolling.MaxUnavailable)...)
}

func validateClaimRetention(path *field.Path, p *appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy) field.ErrorList {
	kept, gone := appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	return append(oneOf(path.Child("whenDeleted"), p.WhenDeleted, kept, gone), oneOf(path.Child("whenScaled"), p.WhenScaled, kept, gone)...)
}

// validateStatefulSetUpdate: identity and storage of the pods are settled at the start.
func validateStatefulSetUpdate(s, old *appsv1.StatefulSet) field.ErrorList {
	faults := immutable(specPath.Child("selector"), s.Spec.Selector, old.Spec.Selector)
	faults = append(faults, unchanged(specPath.Child("volumeClaimTemplates"), s.Spec.VolumeClaimTemplates, old.Spec.VolumeClaimTemplates)...)
	faults = append(faults, immutable(specPath.Child("serviceName"), s.Spec.ServiceName, old.Spec.ServiceName)...)
	return append(faults, immutable(specPath.Child("podManagementPolicy"), s.Spec.PodManagementPolicy, old.Spec.PodManagementPolicy)...)
}

func validateStatefulSetStatus(_ context.Context, obj, old runtime.Object) field.ErrorList {
	s, was := &obj.(*appsv1.StatefulSet).Status, &old.(*appsv1.StatefulSet).Status
	ready, available := counter{"readyReplicas", int64(s.ReadyReplicas)}, counter{"availableReplicas", int64(s.AvailableReplicas)}
	current, updated := counter{"currentReplicas", int64(s.CurrentReplicas)}, counter{"updatedReplicas", int64(s.UpdatedReplicas)}
	faults := counters(counter{"replicas", int64(s.Replicas)}, ready, current, updated, available,
		counter{"observedGeneration", s.ObservedGeneration}, optional("collisionCount", s.CollisionCount))
	faults = append(faults, parts(counter{"status.replicas", int64(s.Replicas)}, ready, current, updated, available)...)
	faults = append(faults, parts(counter{"status.readyReplicas", int64(s.ReadyReplicas)}, available)...)
	return append(faults, onlyGrows("collisionCount", s.CollisionCount, was.CollisionCount)...)
}
