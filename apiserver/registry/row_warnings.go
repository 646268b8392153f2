package registry

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The warnings of single kinds that are not about pods.

func serviceWarnings(s *corev1.Service) []string {
	var out []string
	if _, ok := s.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]; ok {
		out = append(out, fmt.Sprintf("annotation %s is deprecated, please use %s instead", corev1.DeprecatedAnnotationTopologyAwareHints, corev1.AnnotationTopologyMode))
	}
	spec, external := &s.Spec, s.Spec.Type == corev1.ServiceTypeExternalName
	headless := spec.Type == corev1.ServiceTypeClusterIP && spec.ClusterIP == corev1.ClusterIPNone
	if spec.ClusterIP != "" && spec.ClusterIP != corev1.ClusterIPNone {
		out = append(out, ipWarnings(specPath.Child("clusterIPs"), spec.ClusterIPs)...)
	}
	if headless {
		for _, ignored := range []struct {
			set  bool
			name string
		}{
			{spec.LoadBalancerIP != "", "loadBalancerIP"},
			{len(spec.ExternalIPs) > 0, "externalIPs"},
			{spec.SessionAffinity != corev1.ServiceAffinityNone, "SessionAffinity"},
		} {
			if ignored.set {
				out = append(out, "spec."+ignored.name+" is ignored for headless services")
			}
		}
	}
	out = append(out, ipWarnings(specPath.Child("externalIPs"), spec.ExternalIPs)...)
	if len(spec.ExternalIPs) > 0 && !headless && !external {
		out = append(out, "spec.externalIPs is deprecated and may no longer be implemented in some clusters")
	}
	if spec.LoadBalancerIP != "" {
		out = append(out, validation.GetWarningsForIP(specPath.Child("loadBalancerIP"), spec.LoadBalancerIP)...)
	}
	out = append(out, cidrWarnings(specPath.Child("loadBalancerSourceRanges"), spec.LoadBalancerSourceRanges)...)
	if external && len(spec.ExternalIPs) > 0 {
		out = append(out, `spec.externalIPs is ignored when spec.type is "ExternalName"`)
	}
	if !external && spec.ExternalName != "" {
		out = append(out, `spec.externalName is ignored when spec.type is not "ExternalName"`)
	}
	if d := spec.TrafficDistribution; d != nil && *d == corev1.ServiceTrafficDistributionPreferClose {
		out = append(out, fmt.Sprintf("spec.trafficDistribution: %q is deprecated; use %q", *d, corev1.ServiceTrafficDistributionPreferSameZone))
	}
	return out
}

func ipWarnings(path *field.Path, values []string) []string {
	var out []string
	for i, value := range values {
		out = append(out, validation.GetWarningsForIP(path.Index(i), value)...)
	}
	return out
}

func cidrWarnings(path *field.Path, values []string) []string {
	var out []string
	for i, value := range values {
		out = append(out, validation.GetWarningsForCIDR(path.Index(i), value)...)
	}
	return out
}

func nodeWarnings(n *corev1.Node) []string {
	var out []string
	if n.Spec.ConfigSource != nil {
		out = append(out, "spec.configSource: the feature is removed")
	}
	if n.Spec.DoNotUseExternalID != "" {
		out = append(out, "spec.externalID: this field is deprecated, and is unused by Kubernetes")
	}
	return append(out, cidrWarnings(specPath.Child("podCIDRs"), n.Spec.PodCIDRs)...)
}

func secretWarnings(s *corev1.Secret) []string {
	if s.Type == corev1.SecretTypeTLS {
		if _, err := tls.X509KeyPair(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey]); err != nil {
			return []string{err.Error()}
		}
	}
	return nil
}

func persistentVolumeWarnings(v *corev1.PersistentVolume) []string {
	var out []string
	annotations, s := field.NewPath("metadata", "annotations"), &v.Spec
	if _, ok := v.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		out = append(out, annotations.Key(corev1.BetaStorageClassAnnotation).String()+`: deprecated since v1.8; use "storageClassName" attribute instead`)
	}
	if _, ok := v.Annotations[corev1.MountOptionAnnotation]; ok {
		out = append(out, annotations.Key(corev1.MountOptionAnnotation).String()+`: deprecated since v1.31; use "mountOptions" attribute instead`)
	}
	if s.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle {
		out = append(out, specPath.Child("persistentVolumeReclaimPolicy").String()+
			": The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.")
	}
	if s.NodeAffinity != nil && s.NodeAffinity.Required != nil {
		for i, term := range s.NodeAffinity.Required.NodeSelectorTerms {
			out = append(out, nodeTermWarnings(specPath.Child("nodeAffinity", "required", "nodeSelectorTerms").Index(i), term, false)...)
		}
	}
	for _, plugin := range []struct {
		used       bool
		name, fate string
	}{
		{s.CephFS != nil, "cephfs", gone28},
		{s.PhotonPersistentDisk != nil, "photonPersistentDisk", gone11},
		{s.ScaleIO != nil, "scaleIO", gone16},
		{s.StorageOS != nil, "storageOS", gone22},
		{s.Glusterfs != nil, "glusterfs", gone25},
		{s.RBD != nil, "rbd", gone28},
	} {
		if plugin.used {
			out = append(out, fmt.Sprintf("%s: %s", specPath.Child(plugin.name), plugin.fate))
		}
	}
	return out
}

func persistentVolumeClaimWarnings(c *corev1.PersistentVolumeClaim) []string {
	var out []string
	if _, ok := c.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		out = append(out, field.NewPath("metadata", "annotations").Key(corev1.BetaStorageClassAnnotation).String()+
			`: deprecated since v1.8; use "storageClassName" attribute instead`)
	}
	return append(out, claimWarnings(specPath, &c.Spec)...)
}

func storageClassWarnings(c *storagev1.StorageClass) []string {
	var out []string
	for i, topology := range c.AllowedTopologies {
		for j, e := range topology.MatchLabelExpressions {
			if advice, ok := deprecatedLabels[e.Key]; ok {
				at := field.NewPath("allowedTopologies").Index(i).Child("matchLabelExpressions").Index(j).Child("key")
				out = append(out, fmt.Sprintf("%s: %s", at, advice))
			}
		}
	}
	return out
}

// classAnnotation is how the class of an ingress was said before there was a field.
const classAnnotation = "kubernetes.io/ingress.class"

func ingressWarnings(_ context.Context, obj, old runtime.Object) []string {
	i := obj.(*networkingv1.Ingress)
	if _, ok := i.Annotations[classAnnotation]; old != nil || !ok || i.Spec.IngressClassName != nil {
		return nil
	}
	return []string{fmt.Sprintf("annotation %q is deprecated, please use 'spec.ingressClassName' instead", classAnnotation)}
}

func networkPolicyWarnings(p *networkingv1.NetworkPolicy) []string {
	var out []string
	peers := func(path *field.Path, peers []networkingv1.NetworkPolicyPeer) {
		for i, peer := range peers {
			if peer.IPBlock != nil {
				at := path.Index(i).Child("ipBlock")
				out = append(out, validation.GetWarningsForCIDR(at.Child("cidr"), peer.IPBlock.CIDR)...)
				out = append(out, cidrWarnings(at.Child("except"), peer.IPBlock.Except)...)
			}
		}
	}
	for i, rule := range p.Spec.Ingress {
		peers(specPath.Child("ingress").Index(i).Child("from"), rule.From)
	}
	for i, rule := range p.Spec.Egress {
		peers(specPath.Child("egress").Index(i).Child("to"), rule.To)
	}
	return out
}

// These warn of the pod templates of their kinds, and of nothing else.
var (
	templatesOfJobs = templateWarnings(templatePath, func(j *batchv1.Job) *corev1.PodTemplateSpec { return &j.Spec.Template })
	templatesOfCron = templateWarnings(specPath.Child("jobTemplate", "spec", "template"),
		func(c *batchv1.CronJob) *corev1.PodTemplateSpec { return &c.Spec.JobTemplate.Spec.Template })
	templatesOfSets = templateWarnings(templatePath, func(s *appsv1.StatefulSet) *corev1.PodTemplateSpec { return &s.Spec.Template })
)

func jobWarnings(ctx context.Context, obj, old runtime.Object) []string {
	var out []string
	if old == nil || generationOf(obj) != generationOf(old) {
		out = indexWarnings(specPath, &obj.(*batchv1.Job).Spec)
	}
	return append(out, templatesOfJobs(ctx, obj, old)...)
}

// cronJobWarnings: a time zone belongs into its own field; a new object with one in the schedule is refused.
func cronJobWarnings(ctx context.Context, obj, old runtime.Object) []string {
	var out []string
	c := obj.(*batchv1.CronJob)
	if old == nil || generationOf(obj) != generationOf(old) {
		out = indexWarnings(specPath.Child("jobTemplate", "spec"), &c.Spec.JobTemplate.Spec)
	}
	out = append(out, templatesOfCron(ctx, obj, old)...)
	if old != nil && strings.Contains(c.Spec.Schedule, "TZ") {
		out = append(out, "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, "+
			"see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details")
	}
	return out
}

// indexWarnings are about so many indexes that the failed ones may not fit into the status.
func indexWarnings(path *field.Path, s *batchv1.JobSpec) []string {
	const manyIndexes, manyPods = 100_000, 10_000
	indexed := s.CompletionMode != nil && *s.CompletionMode == batchv1.IndexedCompletion
	if !indexed || s.Completions == nil || *s.Completions <= manyIndexes || s.Parallelism == nil || *s.Parallelism <= manyPods {
		return nil
	}
	return []string{path.String() + ": In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, " +
		"Kubernetes might not be able to track completedIndexes when a big number of indexes fail"}
}

func setWarnings(ctx context.Context, obj, old runtime.Object) []string {
	out := templatesOfSets(ctx, obj, old)
	s := obj.(*appsv1.StatefulSet)
	for i := range s.Spec.VolumeClaimTemplates {
		path := specPath.Child("volumeClaimTemplates").Index(i)
		if old != nil {
			path = path.Child("Spec") // as Kubernetes spells it
		}
		out = append(out, claimWarnings(path, &s.Spec.VolumeClaimTemplates[i].Spec)...)
	}
	if limit := s.Spec.RevisionHistoryLimit; limit != nil && *limit < 0 { // which keeps everything
		out = append(out, "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended")
	}
	return out
}
