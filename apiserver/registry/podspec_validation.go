package registry

import (
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validatePodSpec judges what pods and pod templates share; meta is that of a pod, nil in a template. The faults come
// in Kubernetes' order. Containers are in container_validation.go, volumes in volume_validation.go.
func validatePodSpec(path *field.Path, s *corev1.PodSpec, meta *metav1.ObjectMeta) field.ErrorList {
	podName := ""
	if meta != nil {
		podName = meta.Name
	}
	volumes, faults := validateVolumes(path.Child("volumes"), s.Volumes, podName)
	claims, more := validatePodClaims(path.Child("resourceClaims"), s.ResourceClaims, meta)
	faults = append(faults, more...)
	c := containerRules{pod: s, volumes: volumes, claims: claims, names: names{}}
	faults = append(faults, c.regular(path.Child("containers"), s.Containers)...)
	faults = append(faults, c.init(path.Child("initContainers"), s.InitContainers)...)
	faults = append(faults, c.ephemeral(path.Child("ephemeralContainers"), s.EphemeralContainers)...)
	faults = append(faults, validatePodResources(path.Child("resources"), s, claims)...)
	faults = append(faults, validateHostNetwork(path.Child("containers"), s)...)
	faults = append(faults, oneOf(path.Child("restartPolicy"), s.RestartPolicy, corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)...)
	faults = append(faults, oneOf(path.Child("dnsPolicy"), s.DNSPolicy, corev1.DNSClusterFirstWithHostNet, corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone)...)
	faults = append(faults, metavalidation.ValidateLabels(s.NodeSelector, path.Child("nodeSelector"))...)
	faults = append(faults, validatePodSecurity(path.Child("securityContext"), s)...)
	if s.HostPID && isTrue(s.ShareProcessNamespace) {
		faults = append(faults, field.Invalid(path.Child("shareProcessNamespace"), true, "ShareProcessNamespace and HostPID cannot both be enabled"))
	}
	faults = append(faults, validateAffinityRules(path.Child("affinity"), s.Affinity)...)
	faults = append(faults, validateDNS(path.Child("dnsConfig"), s)...)
	faults = append(faults, validateGates(path, s)...)
	faults = append(faults, validateSpread(path.Child("topologySpreadConstraints"), s.TopologySpreadConstraints)...)
	faults = append(faults, validateHostProcess(path, s)...)
	faults = append(faults, validateHostUsers(path, s)...)
	faults = append(faults, validateHostNameOverride(path.Child("hostnameOverride"), s)...)
	return append(faults, validatePodRest(path, s)...)
}

// validatePodRest judges the names of other things that a pod mentions, and what else is left.
func validatePodRest(path *field.Path, s *corev1.PodSpec) field.ErrorList {
	var faults field.ErrorList
	name := func(child, name string, messages func(string) []string) {
		if name != "" {
			faults = append(faults, invalid(path.Child(child), name, messages(name))...)
		}
	}
	subdomain := func(name string) []string { return apivalidation.NameIsDNSSubdomain(name, false) }
	name("serviceAccountName", s.ServiceAccountName, subdomain)
	name("nodeName", s.NodeName, subdomain)
	if d := s.ActiveDeadlineSeconds; d != nil && (*d < 1 || *d > math.MaxInt32) {
		faults = append(faults, field.Invalid(path.Child("activeDeadlineSeconds"), *d, validation.InclusiveRangeError(1, math.MaxInt32)))
	}
	name("hostname", s.Hostname, validation.IsDNS1123Label)
	name("subdomain", s.Subdomain, validation.IsDNS1123Label)
	faults = append(faults, validateTolerations(path.Child("tolerations"), s.Tolerations)...)
	faults = append(faults, validateHostAliases(path.Child("hostAliases"), s.HostAliases)...)
	name("priorityClassName", s.PriorityClassName, subdomain)
	if n := s.RuntimeClassName; n != nil {
		faults = append(faults, invalid(path.Child("runtimeClassName"), *n, subdomain(*n))...)
	}
	if p := s.PreemptionPolicy; p != nil {
		faults = append(faults, oneOf(path.Child("preemptionPolicy"), *p, corev1.PreemptLowerPriority, corev1.PreemptNever)...)
	}
	if s.Overhead != nil {
		overhead := &corev1.ResourceRequirements{Limits: s.Overhead}
		faults = append(faults, resourceRules{name: containerResource}.validate(path.Child("overhead"), overhead)...)
	}
	faults = append(faults, validateOS(path, s)...)
	return append(faults, fileKeyVolumes(path, s)...)
}

// visitContainers calls visit for the containers of every sort, with their paths.
func visitContainers(path *field.Path, s *corev1.PodSpec, visit func(*field.Path, *corev1.Container)) {
	for i := range s.InitContainers {
		visit(path.Child("initContainers").Index(i), &s.InitContainers[i])
	}
	for i := range s.Containers {
		visit(path.Child("containers").Index(i), &s.Containers[i])
	}
	for i := range s.EphemeralContainers {
		visit(path.Child("ephemeralContainers").Index(i), (*corev1.Container)(&s.EphemeralContainers[i].EphemeralContainerCommon))
	}
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

// validateGates: what a pod waits for before it is scheduled, and before it counts as ready.
func validateGates(path *field.Path, s *corev1.PodSpec) field.ErrorList {
	var faults field.ErrorList
	for i, gate := range s.ReadinessGates {
		faults = append(faults, qualifiedName(path.Child("readinessGates").Index(i).Child("conditionType"), string(gate.ConditionType))...)
	}
	seen := map[string]bool{}
	for i, gate := range s.SchedulingGates {
		at := path.Child("schedulingGates").Index(i)
		faults = append(faults, qualifiedName(at, gate.Name)...)
		if seen[gate.Name] {
			faults = append(faults, field.Duplicate(at, gate.Name))
		}
		seen[gate.Name] = true
	}
	return faults
}

func validateTolerations(path *field.Path, tolerations []corev1.Toleration) field.ErrorList {
	var faults field.ErrorList
	for i, t := range tolerations {
		at := path.Index(i)
		operator := at.Child("operator")
		if t.Key != "" {
			faults = append(faults, metavalidation.ValidateLabelName(t.Key, at.Child("key"))...)
		} else if t.Operator != corev1.TolerationOpExists {
			faults = append(faults, field.Invalid(operator, t.Operator, "operator must be Exists when `key` is empty, which means \"match all values and all keys\""))
		}
		if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
			faults = append(faults, field.Invalid(at.Child("effect"), t.Effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"))
		}
		switch t.Operator {
		case "", corev1.TolerationOpEqual:
			if m := validation.IsValidLabelValue(t.Value); len(m) > 0 {
				faults = append(faults, field.Invalid(operator, t.Value, strings.Join(m, ";")))
			}
		case corev1.TolerationOpExists:
			if t.Value != "" {
				faults = append(faults, field.Invalid(operator, t.Value, "value must be empty when `operator` is 'Exists'"))
			}
		case corev1.TolerationOpLt, corev1.TolerationOpGt: // the gate is off by default, the message names them nevertheless
			faults = append(faults, field.NotSupported(operator, t.Operator, []corev1.TolerationOperator{
				corev1.TolerationOpEqual, corev1.TolerationOpExists, corev1.TolerationOpLt, corev1.TolerationOpGt}))
		default:
			faults = append(faults, field.NotSupported(operator, t.Operator, []corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists}))
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

// validatePodTemplate judges the template of a workload.
func validatePodTemplate(path *field.Path, t *corev1.PodTemplateSpec) field.ErrorList {
	faults := metavalidation.ValidateLabels(t.Labels, path.Child("labels"))
	faults = append(faults, apivalidation.ValidateAnnotations(t.Annotations, path.Child("annotations"))...)
	faults = append(faults, podAnnotations(path.Child("annotations"), t.Annotations, &t.Spec)...)
	faults = append(faults, validatePodSpec(path.Child("spec"), &t.Spec, nil)...)
	faults = append(faults, annotatedProfiles(path.Child("spec"), t.Annotations, &t.Spec)...)
	if len(t.Spec.EphemeralContainers) > 0 {
		faults = append(faults, field.Forbidden(path.Child("spec", "ephemeralContainers"), "ephemeral containers not allowed in pod template"))
	}
	return faults
}
