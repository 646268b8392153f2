package registry

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func appsRows() []*Resource {
	return []*Resource{controllerRevisions(), daemonSets(), deployments(), replicaSets(), statefulSets()}
}

func deployments() *Resource {
	r := newRow[appsv1.Deployment, appsv1.DeploymentList](appsv1.SchemeGroupVersion, "deployments", "Deployment")
	r.ShortNames = []string{"deploy"}
	r.Categories = []string{"all"}
	r.Strategy = Strategy{
		Default:          defaulter(defaultDeployment),
		PrepareForCreate: preparer(func(d *appsv1.Deployment) { dropGated(&d.Spec.Template.Spec) }),
		PrepareForUpdate: updatePreparer(func(d, old *appsv1.Deployment) {
			dropGated(&d.Spec.Template.Spec)
			countDeploymentAnnotations(d, old)
		}),
		Validate:       validator(validateDeployment),
		ValidateUpdate: updateValidator(validateDeploymentUpdate),
		Warnings:       namingPods(templateWarnings(templatePath, func(d *appsv1.Deployment) *corev1.PodTemplateSpec { return &d.Spec.Template })),
	}
	status := statusOf(r, func(d, old *appsv1.Deployment) { d.Spec, d.Labels = old.Spec, old.Labels })
	status.Validate = validateDeploymentStatus
	status.Resets = append(status.Resets, "metadata.labels")
	r.Subresources = []Subresource{scale(scaledDeployment), status}
	r.Columns, r.Row = deploymentColumns, cells(deploymentRow)
	return r
}

func defaultDeployment(d *appsv1.Deployment) {
	spec := &d.Spec
	defaultPodTemplate(&spec.Template)
	setPointer(&spec.Replicas, 1)
	setPointer(&spec.RevisionHistoryLimit, 10)
	setPointer(&spec.ProgressDeadlineSeconds, 600)
	setDefault(&spec.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		setPointer(&spec.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		setPointer(&spec.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		setPointer(&spec.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
}

// countDeploymentAnnotations: annotations of a Deployment carry roll-back information, so that they
// count as a new generation (of the other kinds they do not).
func countDeploymentAnnotations(d, old *appsv1.Deployment) {
	if d.Generation == old.Generation && !apiequality.Semantic.DeepEqual(d.Annotations, old.Annotations) {
		d.Generation++
	}
}

func replicaSets() *Resource {
	r := newRow[appsv1.ReplicaSet, appsv1.ReplicaSetList](appsv1.SchemeGroupVersion, "replicasets", "ReplicaSet")
	r.ShortNames = []string{"rs"}
	r.Categories = []string{"all"}
	r.Strategy = Strategy{
		Default:          defaulter(defaultReplicaSet),
		PrepareForCreate: preparer(func(rs *appsv1.ReplicaSet) { dropGated(&rs.Spec.Template.Spec) }),
		PrepareForUpdate: updatePreparer(func(rs, _ *appsv1.ReplicaSet) { dropGated(&rs.Spec.Template.Spec) }),
		Validate:         validator(validateReplicaSet),
		ValidateUpdate:   updateValidator(validateReplicaSetUpdate),
		Warnings:         namingPods(templateWarnings(templatePath, func(rs *appsv1.ReplicaSet) *corev1.PodTemplateSpec { return &rs.Spec.Template })),
	}
	r.Subresources = []Subresource{
		scale(scaledReplicaSet),
		judged(statusOf(r, func(rs, old *appsv1.ReplicaSet) { rs.Spec = old.Spec }), validateReplicaSetStatus),
	}
	r.Columns, r.Row = replicaSetColumns, cells(replicaSetRow)
	return r
}

func defaultReplicaSet(rs *appsv1.ReplicaSet) {
	defaultPodTemplate(&rs.Spec.Template)
	setPointer(&rs.Spec.Replicas, 1)
}

func scaledDeployment(obj runtime.Object) scaled {
	d := obj.(*appsv1.Deployment)
	return scaled{&d.ObjectMeta, &d.Spec.Replicas, d.Status.Replicas, d.Spec.Selector}
}

func scaledReplicaSet(obj runtime.Object) scaled {
	rs := obj.(*appsv1.ReplicaSet)
	return scaled{&rs.ObjectMeta, &rs.Spec.Replicas, rs.Status.Replicas, rs.Spec.Selector}
}
