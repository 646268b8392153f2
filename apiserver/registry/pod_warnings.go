package registry

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// podWarnings are about a pod (path is nil) or a template.
func podWarnings(path *field.Path, meta *metav1.ObjectMeta, s *corev1.PodSpec) []string {
	spec := path.Child("spec")
	out := placementWarnings(spec, s)
	out = append(out, annotationWarnings(path.Child("metadata", "annotations"), meta)...)
	for i := range s.Volumes {
		out = append(out, volumeWarnings(spec.Child("volumes").Index(i), &s.Volumes[i].VolumeSource)...)
	}
	out = append(out, overlapWarnings(s.Volumes)...)
	out = append(out, listWarnings(spec, s)...)
	for _, name := range []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		out = append(out, fractionWarning(spec.Child("overhead"), s.Overhead, name)...)
	}
	containers := containersOf(spec, s)
	for _, c := range containers {
		out = append(out, containerWarnings(c.path, c.Container)...)
	}
	out = append(out, portWarnings(containers)...)
	out = append(out, portNameWarnings(containers)...)
	if grace := s.TerminationGracePeriodSeconds; grace != nil && *grace < 0 {
		out = append(out, fmt.Sprintf("%s: must be >= 0; negative values are invalid and will be treated as 1", spec.Child("terminationGracePeriodSeconds")))
	}
	out = append(out, affinityWarnings(spec.Child("affinity"), s.Affinity)...)
	return append(out, addressWarnings(spec, s)...)
}

// placementWarnings are about the labels that nodes are chosen by.
func placementWarnings(spec *field.Path, s *corev1.PodSpec) []string {
	var out []string
	for key := range s.NodeSelector {
		if advice, ok := deprecatedLabels[key]; ok {
			out = append(out, fmt.Sprintf("%s: %s", spec.Child("nodeSelector").Key(key), advice))
		}
	}
	if s.Affinity != nil && s.Affinity.NodeAffinity != nil {
		path, affinity := spec.Child("affinity", "nodeAffinity"), s.Affinity.NodeAffinity
		if required := affinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
			for i, term := range required.NodeSelectorTerms {
				at := path.Child("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms").Index(i)
				out = append(out, nodeTermWarnings(at, term, false)...)
			}
		}
		for i, term := range affinity.PreferredDuringSchedulingIgnoredDuringExecution {
			at := path.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i).Child("preference")
			out = append(out, nodeTermWarnings(at, term.Preference, true)...)
		}
	}
	for i, c := range s.TopologySpreadConstraints {
		at := spec.Child("topologySpreadConstraints").Index(i)
		if advice, ok := deprecatedLabels[c.TopologyKey]; ok {
			out = append(out, fmt.Sprintf("%s: %s is %s", at.Child("topologyKey"), c.TopologyKey, advice))
		}
		out = append(out, nullSelector(at, c.LabelSelector)...)
	}
	return out
}

func nullSelector(at *field.Path, selector *metav1.LabelSelector) []string {
	if selector != nil {
		return nil
	}
	return []string{fmt.Sprintf("%s: a null labelSelector results in matching no pod", at.Child("labelSelector"))}
}

func affinityWarnings(path *field.Path, a *corev1.Affinity) []string {
	var out []string
	terms := func(path *field.Path, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		for i, t := range required {
			out = append(out, nullSelector(path.Child("requiredDuringSchedulingIgnoredDuringExecution").Index(i), t.LabelSelector)...)
		}
		for i, t := range preferred {
			at := path.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i).Child("podAffinityTerm")
			out = append(out, nullSelector(at, t.PodAffinityTerm.LabelSelector)...)
		}
	}
	if a != nil && a.PodAffinity != nil {
		terms(path.Child("podAffinity"), a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a != nil && a.PodAntiAffinity != nil {
		terms(path.Child("podAntiAffinity"), a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return out
}

// annotationWarnings are about annotations that have become fields.
func annotationWarnings(path *field.Path, meta *metav1.ObjectMeta) []string {
	var out []string
	for _, old := range []struct{ key, advice string }{
		{"scheduler.alpha.kubernetes.io/critical-pod", `non-functional in v1.16+; use the "priorityClassName" field instead`},
		{"security.alpha.kubernetes.io/sysctls", `non-functional in v1.11+; use the "sysctls" field instead`},
		{"security.alpha.kubernetes.io/unsafe-sysctls", `non-functional in v1.11+; use the "sysctls" field instead`},
	} {
		if _, ok := meta.Annotations[old.key]; ok {
			out = append(out, fmt.Sprintf("%s: %s", path.Key(old.key), old.advice))
		}
	}
	return out
}

// listWarnings find items of one key: a merge patch keeps only the last of them.
func listWarnings(spec *field.Path, s *corev1.PodSpec) []string {
	var out []string
	seen := map[string]bool{}
	for i, alias := range s.HostAliases {
		if seen[alias.IP] {
			out = append(out, fmt.Sprintf("%s: duplicate ip %q", spec.Child("hostAliases").Index(i).Child("ip"), alias.IP))
		}
		seen[alias.IP] = true
	}
	clear(seen)
	for i, secret := range s.ImagePullSecrets {
		if seen[secret.Name] {
			out = append(out, fmt.Sprintf("%s: duplicate name %q", spec.Child("imagePullSecrets").Index(i).Child("name"), secret.Name))
		}
		seen[secret.Name] = true
	}
	for i, secret := range s.ImagePullSecrets {
		if secret.Name == "" {
			out = append(out, fmt.Sprintf("%s: invalid empty name %q", spec.Child("imagePullSecrets").Index(i).Child("name"), ""))
		}
	}
	return out
}

// addressWarnings are about addresses in a form that is to be refused one day.
func addressWarnings(spec *field.Path, s *corev1.PodSpec) []string {
	var out []string
	if s.DNSConfig != nil {
		for i, server := range s.DNSConfig.Nameservers {
			out = append(out, validation.GetWarningsForIP(spec.Child("dnsConfig", "nameservers").Index(i), server)...)
		}
	}
	for i, alias := range s.HostAliases {
		out = append(out, validation.GetWarningsForIP(spec.Child("hostAliases").Index(i).Child("ip"), alias.IP)...)
	}
	return out
}

// A containerAt is a container of any kind, and where it stands.
type containerAt struct {
	*corev1.Container
	path *field.Path
}

func containersOf(spec *field.Path, s *corev1.PodSpec) []containerAt {
	var out []containerAt
	for i := range s.InitContainers {
		out = append(out, containerAt{&s.InitContainers[i], spec.Child("initContainers").Index(i)})
	}
	for i := range s.Containers {
		out = append(out, containerAt{&s.Containers[i], spec.Child("containers").Index(i)})
	}
	for i := range s.EphemeralContainers {
		c := corev1.Container(s.EphemeralContainers[i].EphemeralContainerCommon)
		out = append(out, containerAt{&c, spec.Child("ephemeralContainers").Index(i)})
	}
	return out
}

func containerWarnings(path *field.Path, c *corev1.Container) []string {
	var out []string
	for _, name := range []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		out = append(out, fractionWarning(path.Child("resources", "limits"), c.Resources.Limits, name)...)
		out = append(out, fractionWarning(path.Child("resources", "requests"), c.Resources.Requests, name)...)
	}
	seen := map[string]bool{}
	for i, e := range c.Env {
		reference := "$(" + e.Name + ")" // a second definition may extend the first
		extends := e.ValueFrom == nil && e.Value != reference && strings.Contains(e.Value, reference)
		if seen[e.Name] && !extends {
			out = append(out, fmt.Sprintf("%s: hides previous definition of %q, which may be dropped when using apply", path.Child("env").Index(i), e.Name))
		}
		seen[e.Name] = true
	}
	return out
}

// portWarnings compare the ports of one number and protocol of all containers.
func portWarnings(containers []containerAt) []string {
	type portAt struct {
		corev1.ContainerPort
		path *field.Path
	}
	var out []string
	all := map[portKey][]portAt{}
	for _, c := range containers {
		for i, port := range c.Ports {
			path, key := c.path.Child("ports").Index(i), portKey{port.ContainerPort, port.Protocol}
			if port.HostIP != "" && port.HostPort == 0 {
				out = append(out, fmt.Sprintf("%s: hostIP set without hostPort: %+v", path, port))
			}
			for _, other := range all[key] {
				if clash := clashOf(port, other.ContainerPort); clash != "" {
					out = append(out, fmt.Sprintf("%s: %s port definition with %s", path, clash, other.path))
				}
			}
			all[key] = append(all[key], portAt{port, path})
		}
	}
	return out
}

func clashOf(a, b corev1.ContainerPort) string {
	switch {
	case a.HostIP == b.HostIP && a.HostPort == b.HostPort:
		return "duplicate"
	case a.HostPort == 0 || b.HostPort == 0:
		return "overlapping"
	case a.HostPort == b.HostPort && (a.HostIP == "") != (b.HostIP == ""):
		return "dangerously ambiguous"
	}
	return ""
}

func portNameWarnings(containers []containerAt) []string {
	var out []string
	first := map[string]*field.Path{}
	for _, c := range containers {
		for i, port := range c.Ports {
			path := c.path.Child("ports").Index(i)
			switch other := first[port.Name]; {
			case port.Name == "":
			case other == nil:
				first[port.Name] = path
			default:
				out = append(out, fmt.Sprintf("%s: duplicate port name %q with %s, services and probes that select ports by name will use %s", path, port.Name, other, other))
			}
		}
	}
	return out
}
