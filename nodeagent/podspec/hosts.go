package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// HostsFile is the /etc/hosts of a pod's containers: the usual local names (or, on the host's
// network, the host's file), the pod's own name, and its hostAliases.
func HostsFile(pod *corev1.Pod, podIPs []string, clusterDomain, hostFile string) string {
	var b strings.Builder
	b.WriteString("# Kubernetes-managed hosts file")
	if pod.Spec.HostNetwork {
		b.WriteString(" (host network).\n" + hostFile)
		if !strings.HasSuffix(hostFile, "\n") {
			b.WriteString("\n")
		}
	} else {
		b.WriteString(".\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n" +
			"fe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n")
		hostname, domain := Hostname(pod, clusterDomain)
		for _, ip := range podIPs {
			if domain != "" {
				fmt.Fprintf(&b, "%s\t%s.%s\t%s\n", ip, hostname, domain, hostname)
			} else {
				fmt.Fprintf(&b, "%s\t%s\n", ip, hostname)
			}
		}
	}
	if len(pod.Spec.HostAliases) > 0 {
		b.WriteString("\n# Entries added by HostAliases.\n")
		for _, a := range pod.Spec.HostAliases {
			fmt.Fprintf(&b, "%s\t%s\n", a.IP, strings.Join(a.Hostnames, "\t"))
		}
	}
	return b.String()
}
