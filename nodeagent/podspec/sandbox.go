package podspec

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// SandboxInput is what a sandbox config needs beside the pod.
type SandboxInput struct {
	Attempt       uint32
	LogDir        string // of this pod
	Node          string
	ClusterDomain string
	CgroupParent  string
	DNS           *runtimeapi.DNSConfig
}

// SandboxConfig describes the pod's sandbox to the runtime.
func SandboxConfig(pod *corev1.Pod, in SandboxInput) *runtimeapi.PodSandboxConfig {
	psc := pod.Spec.SecurityContext
	if psc == nil {
		psc = &corev1.PodSecurityContext{}
	}
	hostname, domain := Hostname(pod, in.ClusterDomain)
	if isTrue(pod.Spec.SetHostnameAsFQDN) && domain != "" {
		hostname += "." + domain
	}
	labels := maps.Clone(pod.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[LabelPodName], labels[LabelPodNamespace] = pod.Name, pod.Namespace
	labels[LabelPodUID], labels[LabelNode] = string(pod.UID), in.Node
	c := &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{
			Name: pod.Name, Namespace: pod.Namespace, Uid: string(pod.UID), Attempt: in.Attempt},
		Hostname:     hostname,
		LogDirectory: in.LogDir,
		DnsConfig:    in.DNS,
		PortMappings: portMappings(pod),
		Labels:       labels,
		Annotations:  maps.Clone(pod.Annotations),
		Linux: &runtimeapi.LinuxPodSandboxConfig{
			CgroupParent: in.CgroupParent,
			Sysctls:      map[string]string{},
			Resources:    PodResources(pod),
			SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
				NamespaceOptions:   namespaceOptions(pod),
				SupplementalGroups: supplementalGroups(psc),
				RunAsUser:          int64Value(psc.RunAsUser),
				RunAsGroup:         int64Value(psc.RunAsGroup),
				Privileged:         privileged(pod),
				Seccomp:            seccomp(psc.SeccompProfile),
			},
		},
	}
	for _, s := range psc.Sysctls {
		c.Linux.Sysctls[s.Name] = s.Value
	}
	if c.Linux.SecurityContext.RunAsUser == nil && c.Linux.SecurityContext.RunAsGroup != nil {
		c.Linux.SecurityContext.RunAsUser = &runtimeapi.Int64Value{} // CRI: a group needs a user
	}
	return c
}

// Hostname returns the pod's host name and, for pods in a subdomain, the domain that completes it.
func Hostname(pod *corev1.Pod, clusterDomain string) (hostname, domain string) {
	if pod.Spec.HostnameOverride != nil {
		return *pod.Spec.HostnameOverride, ""
	}
	hostname = pod.Spec.Hostname
	if hostname == "" {
		hostname = pod.Name
	}
	if len(hostname) > 63 { // RFC 1123; a cut name may not end in '-' or '.'
		hostname = hostname[:63]
		for hostname[len(hostname)-1] == '-' || hostname[len(hostname)-1] == '.' {
			hostname = hostname[:len(hostname)-1]
		}
	}
	if pod.Spec.Subdomain != "" {
		domain = pod.Spec.Subdomain + "." + pod.Namespace + ".svc." + clusterDomain
	}
	return hostname, domain
}

func privileged(pod *corev1.Pod) bool {
	is := func(c corev1.Container) bool {
		return c.SecurityContext != nil && isTrue(c.SecurityContext.Privileged)
	}
	return slices.ContainsFunc(pod.Spec.Containers, is) || slices.ContainsFunc(pod.Spec.InitContainers, is)
}

// portMappings are the host ports. Pods on the host's network have none: they use the port itself.
func portMappings(pod *corev1.Pod) []*runtimeapi.PortMapping {
	if pod.Spec.HostNetwork {
		return nil
	}
	var out []*runtimeapi.PortMapping
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			for _, p := range list[i].Ports {
				if p.HostPort == 0 {
					continue
				}
				out = append(out, &runtimeapi.PortMapping{
					Protocol:      runtimeapi.Protocol(runtimeapi.Protocol_value[string(p.Protocol)]),
					ContainerPort: p.ContainerPort, HostPort: p.HostPort, HostIp: p.HostIP,
				})
			}
		}
	}
	return out
}
