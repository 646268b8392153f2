package registry

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func statefulSets() *Resource {
	r := newRow[appsv1.StatefulSet, appsv1.StatefulSetList](appsv1.SchemeGroupVersion, "statefulsets", "StatefulSet")
	r.ShortNames, r.Categories = []string{"sts"}, []string{"all"}
	r.Strategy = Strategy{
		Default:          defaulter(defaultStatefulSet),
		PrepareForCreate: preparer(func(s *appsv1.StatefulSet) { dropGated(&s.Spec.Template.Spec) }),
		PrepareForUpdate: updatePreparer(func(s, _ *appsv1.StatefulSet) { dropGated(&s.Spec.Template.Spec) }),
		ValidateName:     apivalidation.NameIsDNSLabel, // pods and their host names are called after it
		Validate:         validator(validateStatefulSet),
		ValidateUpdate:   updateValidator(validateStatefulSetUpdate),
		Warnings:         setWarnings,
	}
	status := statusOf(r, func(s, old *appsv1.StatefulSet) { s.Spec = old.Spec })
	status.Validate = validateStatefulSetStatus
	r.Subresources = []Subresource{
		scale(func(obj runtime.Object) scaled {
			s := obj.(*appsv1.StatefulSet)
			return scaled{&s.ObjectMeta, &s.Spec.Replicas, s.Status.Replicas, s.Spec.Selector}
		}),
		status,
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

func statefulSetRow(s *appsv1.StatefulSet, now time.Time) []any {
	names, images := containerCells(s.Spec.Template.Spec.Containers)
	return []any{s.Name, fmt.Sprintf("%d/%d", s.Status.ReadyReplicas, replicas(s.Spec.Replicas)), age(&s.ObjectMeta, now), names, images}
}
