package dns

import (
	"net/netip"
	"strings"
)

// pod answers "10-1-2-3.namespace.pod" by the address that the name says (section 2.6 leaves open whether there must be
// such a pod). To know all pods of the cluster, each node would have to watch them.
func (z *zone) pod(labels []string, namespace string, q question) answer {
	if len(labels) != 1 || !z.cluster.hasNamespace(namespace) {
		return noSuchName
	}
	address, ok := undashed(labels[0])
	if !ok {
		return noSuchName
	}
	return q.addresses([]string{address})
}

// dashed writes an address as a label: 10.1.2.3 is 10-1-2-3, and fd00::1 is fd00--1.
func dashed(address string) string {
	label := strings.NewReplacer(".", "-", ":", "-").Replace(address)
	if strings.HasPrefix(label, "-") { // no label begins or ends with a dash: ::1 is 0--1
		label = "0" + label
	}
	if strings.HasSuffix(label, "-") {
		label += "0"
	}
	return label
}

// undashed reads what dashed writes.
func undashed(label string) (address string, ok bool) {
	for _, separator := range []string{".", ":"} {
		text := strings.ReplaceAll(label, "-", separator)
		if _, err := netip.ParseAddr(text); err == nil {
			return text, true
		}
	}
	return "", false
}
