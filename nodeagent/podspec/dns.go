package podspec

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Limits of resolv.conf that Kubernetes applies.
const (
	maxNameservers   = 3
	maxSearches      = 32
	maxSearchesChars = 2048
)

// DNSInput is the resolver configuration of the cluster and of the host.
type DNSInput struct {
	ClusterDNS    []string // empty: the cluster has no DNS service, ClusterFirst means Default
	ClusterDomain string
	Host          *runtimeapi.DNSConfig
}

// DNS is the resolv.conf of a pod by its dnsPolicy and dnsConfig.
func DNS(pod *corev1.Pod, in DNSInput) *runtimeapi.DNSConfig {
	out := &runtimeapi.DNSConfig{}
	switch policy := pod.Spec.DNSPolicy; {
	case policy == corev1.DNSNone:
	case len(in.ClusterDNS) > 0 && (policy == corev1.DNSClusterFirstWithHostNet ||
		policy != corev1.DNSDefault && !pod.Spec.HostNetwork):
		out.Servers = append(out.Servers, in.ClusterDNS...)
		out.Searches = append(out.Searches,
			pod.Namespace+".svc."+in.ClusterDomain, "svc."+in.ClusterDomain, in.ClusterDomain)
		out.Searches = append(out.Searches, in.Host.GetSearches()...)
		out.Options = []string{"ndots:5"}
	default:
		out.Servers = append(out.Servers, in.Host.GetServers()...)
		out.Searches = append(out.Searches, in.Host.GetSearches()...)
		out.Options = append(out.Options, in.Host.GetOptions()...)
	}
	if c := pod.Spec.DNSConfig; c != nil {
		out.Servers = append(out.Servers, c.Nameservers...)
		out.Searches = append(out.Searches, c.Searches...)
		for _, o := range c.Options {
			out.Options = withOption(out.Options, o)
		}
	}
	out.Servers = unique(out.Servers)
	if len(out.Servers) > maxNameservers {
		out.Servers = out.Servers[:maxNameservers]
	}
	out.Searches = unique(out.Searches)
	for len(out.Searches) > maxSearches || len(strings.Join(out.Searches, " ")) > maxSearchesChars {
		out.Searches = out.Searches[:len(out.Searches)-1]
	}
	return out
}

// withOption sets a resolver option, replacing one of the same name ("ndots:2" replaces "ndots:5").
func withOption(options []string, o corev1.PodDNSConfigOption) []string {
	text := o.Name
	if o.Value != nil {
		text += ":" + *o.Value
	}
	for i, have := range options {
		if name, _, _ := strings.Cut(have, ":"); name == o.Name {
			options[i] = text
			return options
		}
	}
	return append(options, text)
}

func unique(list []string) []string {
	seen := map[string]bool{}
	out := list[:0:0]
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

// ParseResolvConf reads the text of a resolv.conf; what it does not know it skips, as resolvers do.
func ParseResolvConf(text string) *runtimeapi.DNSConfig {
	out := &runtimeapi.DNSConfig{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 2 || strings.HasPrefix(f[0], "#") || strings.HasPrefix(f[0], ";") {
			continue
		}
		switch f[0] {
		case "nameserver":
			out.Servers = append(out.Servers, f[1])
		case "search", "domain":
			out.Searches = f[1:]
		case "options":
			out.Options = append(out.Options, f[1:]...)
		}
	}
	return out
}
