package main

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	webv1 "kontiki/examples/operator/api/v1"
)

// owner is under which name we own fields of what we apply.
const owner = "site-operator"

// siteLabel finds the pods of a site.
const siteLabel = "web.example.com/site"

// deploymentOf is what a Site owns: the Deployment goes when the Site does.
func deploymentOf(site *webv1.Site) *appsv1ac.DeploymentApplyConfiguration {
	selector := map[string]string{siteLabel: site.Name}
	return appsv1ac.Deployment(site.Name, site.Namespace).
		WithLabels(selector).
		WithOwnerReferences(metav1ac.OwnerReference().
			WithAPIVersion(webv1.GroupVersion.String()).WithKind("Site").WithName(site.Name).WithUID(site.UID).
			WithController(true).WithBlockOwnerDeletion(true)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(*site.Spec.Replicas).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector)).
			WithTemplate(corev1ac.PodTemplateSpec().
				WithLabels(selector).
				WithSpec(corev1ac.PodSpec().WithTerminationGracePeriodSeconds(2).WithContainers(serverOf(site)))))
}

func serverOf(site *webv1.Site) *corev1ac.ContainerApplyConfiguration {
	return corev1ac.Container().
		WithName("server").
		WithImage(site.Spec.Image.Repository + ":" + site.Spec.Image.Tag).
		WithImagePullPolicy(corev1.PullIfNotPresent).
		WithEnv(corev1ac.EnvVar().WithName("GREETING").WithValue(site.Spec.Greeting)).
		WithPorts(corev1ac.ContainerPort().WithName("http").WithContainerPort(8080)).
		WithReadinessProbe(corev1ac.Probe().WithPeriodSeconds(1).
			WithHTTPGet(corev1ac.HTTPGetAction().WithPath("/").WithPort(intstr.FromString("http"))))
}

// statusOf is what a Site reports of its Deployment, as the server answered.
func statusOf(site *webv1.Site, deployment *appsv1ac.DeploymentApplyConfiguration) webv1.SiteStatus {
	out := *site.Status.DeepCopy()
	out.Replicas, out.ReadyReplicas = 0, 0
	if s := deployment.Status; s != nil {
		out.Replicas, out.ReadyReplicas = valueOf(s.Replicas), valueOf(s.ReadyReplicas)
	}
	out.Selector = labels.Set{siteLabel: site.Name}.String()
	meta.SetStatusCondition(&out.Conditions, readyCondition(site, out.ReadyReplicas))
	return out
}

// readyCondition says whether as many servers answer as are wanted.
func readyCondition(site *webv1.Site, ready int32) metav1.Condition {
	out := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "TooFewServers", ObservedGeneration: site.Generation}
	if ready >= *site.Spec.Replicas {
		out.Status, out.Reason = metav1.ConditionTrue, "ServersAnswer"
	}
	return out
}

func valueOf(n *int32) int32 {
	if n == nil {
		return 0
	}
	return *n
}
