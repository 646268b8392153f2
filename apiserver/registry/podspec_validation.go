package registry

import (
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validatePodSpec judges what pods and pod templates share. Containers are in container_validation.go,
// volumes in volume_validation.go.
//
// Not yet: resource claims, Windows, resources of the pod as a whole (issue 4).
func validatePodSpec(path *field.Path, s *corev1.PodSpec) field.ErrorList {
	volumes, faults := validateVolumes(path.Child("volumes"), s.Volumes)
	c := containerRules{volumes: volumes, grace: s.TerminationGracePeriodSeconds, names: names{}}
	faults = append(faults, c.regular(path.Child("containers"), s.Containers)...)
	faults = append(faults, c.init(path.Child("initContainers"), s.InitContainers)...)
	faults = append(faults, c.ephemeral(path.Child("ephemeralContainers"), s.EphemeralContainers)...)
	faults = append(faults, validateHostNetwork(path.Child("containers"), s)...)

	faults = append(faults, oneOf(path.Child("restartPolicy"), s.RestartPolicy, corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)...)
	faults = append(faults, oneOf(path.Child("dnsPolicy"), s.DNSPolicy, corev1.DNSClusterFirstWithHostNet, corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone)...)
	if s.PreemptionPolicy != nil {
		faults = append(faults, oneOf(path.Child("preemptionPolicy"), *s.PreemptionPolicy, corev1.PreemptLowerPriority, corev1.PreemptNever)...)
	}
	faults = append(faults, metavalidation.ValidateLabels(s.NodeSelector, path.Child("nodeSelector"))...)
	faults = append(faults, validatePodNames(path, s)...)
	faults = append(faults, validateTolerations(path.Child("tolerations"), s.Tolerations)...)
	faults = append(faults, validateAffinityRules(path.Child("affinity"), s.Affinity)...)
	faults = append(faults, validatePodSecurity(path, s)...)
	faults = append(faults, validateDNS(path, s)...)
	faults = append(faults, validateSpread(path.Child("topologySpreadConstraints"), s.TopologySpreadConstraints)...)
	if d := s.ActiveDeadlineSeconds; d != nil && (*d < 1 || *d > math.MaxInt32) {
		faults = append(faults, field.Invalid(path.Child("activeDeadlineSeconds"), *d, validation.InclusiveRangeError(1, math.MaxInt32)))
	}
	for i, secret := range s.ImagePullSecrets {
		faults = append(faults, required(path.Child("imagePullSecrets").Index(i).Child("name"), secret.Name)...)
	}
	for i, gate := range s.ReadinessGates {
		faults = append(faults, qualifiedName(path.Child("readinessGates").Index(i).Child("conditionType"), string(gate.ConditionType))...)
	}
	gates := names{}
	for i, gate := range s.SchedulingGates {
		at := path.Child("schedulingGates").Index(i)
		faults = append(faults, qualifiedName(at.Child("name"), gate.Name)...)
		faults = append(faults, gates.add(at, gate.Name)...)
	}
	for i, alias := range s.HostAliases {
		at := path.Child("hostAliases").Index(i)
		faults = append(faults, validation.IsValidIP(at.Child("ip"), alias.IP)...)
		for j, host := range alias.Hostnames {
			faults = append(faults, dnsSubdomain(at.Child("hostnames").Index(j), host)...)
		}
	}
	return faults
}

// validatePodNames judges the names of other things that a pod spec mentions.
func validatePodNames(path *field.Path, s *corev1.PodSpec) field.ErrorList {
	var faults field.ErrorList
	for child, name := range inOrder(map[string]string{
		"serviceAccountName": s.ServiceAccountName, "nodeName": s.NodeName, "priorityClassName": s.PriorityClassName,
	}) {
		if name != "" {
			faults = append(faults, invalid(path.Child(child), name, apivalidation.NameIsDNSSubdomain(name, false))...)
		}
	}
	if s.RuntimeClassName != nil {
		faults = append(faults, dnsSubdomain(path.Child("runtimeClassName"), *s.RuntimeClassName)...)
	}
	if s.Hostname != "" {
		faults = append(faults, dnsLabel(path.Child("hostname"), s.Hostname)...)
	}
	if s.Subdomain != "" {
		faults = append(faults, dnsLabel(path.Child("subdomain"), s.Subdomain)...)
	}
	return faults
}

// validateHostNetwork: on the host's network a container port is that port of the host.
func validateHostNetwork(path *field.Path, s *corev1.PodSpec) field.ErrorList {
	var faults field.ErrorList
	if !s.HostNetwork {
		return nil
	}
	for i, c := range s.Containers {
		for j, p := range c.Ports {
			if p.HostPort != 0 && p.HostPort != p.ContainerPort {
				at := path.Index(i).Child("ports").Index(j).Child("hostPort")
				faults = append(faults, field.Invalid(at, p.HostPort, "must match `containerPort` when `hostNetwork` is true"))
			}
		}
	}
	return faults
}

func validateTolerations(path *field.Path, tolerations []corev1.Toleration) field.ErrorList {
	var faults field.ErrorList
	for i, t := range tolerations {
		at := path.Index(i)
		if t.Key != "" {
			faults = append(faults, metavalidation.ValidateLabelName(t.Key, at.Child("key"))...)
		} else if t.Operator != corev1.TolerationOpExists {
			faults = append(faults, field.Invalid(at.Child("operator"), t.Operator,
				"operator must be Exists when `key` is empty, which means \"match all values and all keys\""))
		}
		if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
			faults = append(faults, field.Invalid(at.Child("effect"), t.Effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"))
		}
		switch t.Operator {
		case "", corev1.TolerationOpEqual:
			if m := validation.IsValidLabelValue(t.Value); len(m) > 0 {
				faults = append(faults, field.Invalid(at.Child("operator"), t.Value, strings.Join(m, ";")))
			}
		case corev1.TolerationOpExists:
			if t.Value != "" {
				faults = append(faults, field.Invalid(at.Child("operator"), t.Value, "value must be empty when `operator` is 'Exists'"))
			}
		default:
			faults = append(faults, field.NotSupported(at.Child("operator"), t.Operator, []corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists}))
		}
		if t.Effect != "" {
			faults = append(faults, taintEffect(at.Child("effect"), t.Effect)...)
		}
	}
	return faults
}

func taintEffect(path *field.Path, effect corev1.TaintEffect) field.ErrorList {
	return oneOf(path, effect, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)
}

func validateSpread(path *field.Path, constraints []corev1.TopologySpreadConstraint) field.ErrorList {
	var faults field.ErrorList
	for i, c := range constraints {
		at := path.Index(i)
		if c.MaxSkew <= 0 {
			faults = append(faults, field.Invalid(at.Child("maxSkew"), c.MaxSkew, "must be greater than zero"))
		}
		if c.TopologyKey == "" {
			faults = append(faults, field.Required(at.Child("topologyKey"), "can not be empty"))
		} else {
			faults = append(faults, metavalidation.ValidateLabelName(c.TopologyKey, at.Child("topologyKey"))...)
		}
		faults = append(faults, oneOf(at.Child("whenUnsatisfiable"), c.WhenUnsatisfiable, corev1.DoNotSchedule, corev1.ScheduleAnyway)...)
		faults = append(faults, metavalidation.ValidateLabelSelector(c.LabelSelector, metavalidation.LabelSelectorValidationOptions{}, at.Child("labelSelector"))...)
	}
	return faults
}

// validatePodTemplate judges the template of a workload.
func validatePodTemplate(path *field.Path, t *corev1.PodTemplateSpec) field.ErrorList {
	faults := metavalidation.ValidateLabels(t.Labels, path.Child("labels"))
	faults = append(faults, apivalidation.ValidateAnnotations(t.Annotations, path.Child("annotations"))...)
	faults = append(faults, validatePodSpec(path.Child("spec"), &t.Spec)...)
	if len(t.Spec.EphemeralContainers) > 0 {
		faults = append(faults, field.Forbidden(path.Child("spec", "ephemeralContainers"), "ephemeral containers not allowed in pod template"))
	}
	return faults
}
