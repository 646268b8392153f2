package dns

import (
	"strings"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// service answers names of Services: labels is what stands before the namespace, the Service's name last.
// Sections are those of the specification.
func (z *zone) service(labels []string, namespace string, q question) answer {
	n := len(labels)
	s := z.cluster.service(namespace, labels[n-1])
	if s == nil {
		return noSuchName
	}
	switch {
	case s.Spec.Type == corev1.ServiceTypeExternalName: // section 2.5
		if n > 1 {
			return noSuchName
		}
		target := dns.Fqdn(s.Spec.ExternalName)
		return answer{exists: true, next: target, records: []dns.RR{&dns.CNAME{Hdr: q.header(dns.TypeCNAME), Target: target}}}
	case n == 1 && isHeadless(s):
		return q.addresses(addressesOf(z.endpoints(s, ""))) // 2.4.1
	case n == 1:
		return q.addresses(s.Spec.ClusterIPs) // 2.3.1
	case n == 2 && strings.HasPrefix(labels[0], "_"):
		return z.protocol(s, labels[0])
	case n == 2 && isHeadless(s):
		endpoints := z.endpoints(s, labels[0]) // 2.4.1
		if len(endpoints) == 0 {
			return noSuchName
		}
		return q.addresses(addressesOf(endpoints))
	case n == 3 && isHeadless(s):
		return z.headlessPort(s, labels[0], labels[1], q) // 2.4.2
	case n == 3:
		return z.port(s, labels[0], labels[1], q) // 2.3.2
	}
	return noSuchName
}

// hostOf is the full name of a Service.
func (z *zone) hostOf(s *corev1.Service) string {
	return s.Name + "." + s.Namespace + ".svc." + z.domain
}

// protocol answers "_tcp.service…": it is there if a port below it is.
func (z *zone) protocol(s *corev1.Service, label string) answer {
	for _, p := range s.Spec.Ports {
		if p.Name != "" && label == "_"+strings.ToLower(string(p.Protocol)) {
			return noRecords
		}
	}
	return noSuchName
}

// port answers "_port._protocol.service…" of a Service with an address. Only named ports have such a name.
func (z *zone) port(s *corev1.Service, port, protocol string, q question) answer {
	for _, p := range s.Spec.Ports {
		if !matches(p.Name, p.Protocol, port, protocol) {
			continue
		}
		host := question{owner: z.hostOf(s)}
		a := q.only(dns.TypeSRV, z.srv(q, host.owner, p.Port))
		if len(a.records) > 0 {
			a.extra = host.bothFamilies(s.Spec.ClusterIPs)
		}
		return a
	}
	return noSuchName
}

// headlessPort answers the same of a headless Service: a record for each endpoint and the port that it has.
func (z *zone) headlessPort(s *corev1.Service, port, protocol string, q question) answer {
	a := noSuchName
	seen := map[string]bool{}
	for _, e := range z.endpoints(s, "") {
		for _, p := range e.ports {
			if p.Port == nil || !matches(ptr.Deref(p.Name, ""), ptr.Deref(p.Protocol, corev1.ProtocolTCP), port, protocol) {
				continue
			}
			a.exists = true
			host := question{owner: e.hostname + "." + z.hostOf(s)}
			if q.kind != dns.TypeSRV {
				continue
			}
			record := z.srv(q, host.owner, *p.Port)
			if !seen[record.String()] { // dual-stack pods are in two slices
				seen[record.String()] = true
				a.records = append(a.records, record)
			}
			a.extra = append(a.extra, host.bothFamilies([]string{e.address})...)
		}
	}
	return a
}

// srv is the record of a port; priority and weight are the same for all.
func (z *zone) srv(q question, target string, port int32) dns.RR {
	return &dns.SRV{Hdr: q.header(dns.TypeSRV), Weight: 100, Port: uint16(port), Target: target}
}

// matches says whether a port is the one of the labels "_name" and "_protocol".
func matches(name string, protocol corev1.Protocol, nameLabel, protocolLabel string) bool {
	return name != "" && nameLabel == "_"+name && protocolLabel == "_"+strings.ToLower(string(protocol))
}

// endpoint is one address behind a headless Service.
type endpoint struct {
	address  string
	hostname string // the pod's, or made of the address
	ports    []discoveryv1.EndpointPort
}

// endpoints returns the ready endpoints of a Service; those of one host name, if it is not empty. The controller that
// writes slices marks all as ready where the Service publishes addresses that are not.
func (z *zone) endpoints(s *corev1.Service, hostname string) (all []endpoint) {
	for _, slice := range z.cluster.slicesOf(s.Namespace, s.Name) {
		for _, e := range slice.Endpoints {
			if !ptr.Deref(e.Conditions.Ready, true) {
				continue
			}
			for _, address := range e.Addresses {
				name := hostnameOf(e, address)
				if hostname == "" || hostname == name {
					all = append(all, endpoint{address: address, hostname: name, ports: slice.Ports})
				}
			}
		}
	}
	return all
}

// hostnameOf is the label of an endpoint below its Service: its host name or, as the specification leaves the choice,
// its address with dashes.
func hostnameOf(e discoveryv1.Endpoint, address string) string {
	if name := ptr.Deref(e.Hostname, ""); name != "" {
		return strings.ToLower(name)
	}
	return dashed(address)
}

// addressesOf returns each address once.
func addressesOf(endpoints []endpoint) (addresses []string) {
	seen := map[string]bool{}
	for _, e := range endpoints {
		if !seen[e.address] {
			seen[e.address] = true
			addresses = append(addresses, e.address)
		}
	}
	return addresses
}
