package dns

import (
	"net"
	"net/netip"
	"strings"

	"github.com/miekg/dns"
)

// question is what is asked: a name and a type of record.
type question struct {
	name  string // lower case, fully qualified
	owner string // as it was asked: resolvers that mix cases to detect forgeries want it back
	kind  uint16
}

func newQuestion(name string, kind uint16) question {
	name = dns.Fqdn(name)
	return question{name: strings.ToLower(name), owner: name, kind: kind}
}

func (q question) header(kind uint16) dns.RR_Header {
	return dns.RR_Header{Name: q.owner, Rrtype: kind, Class: dns.ClassINET, Ttl: ttlSeconds}
}

// only is an answer of one record, for those who ask for its type.
func (q question) only(kind uint16, record dns.RR) answer {
	if q.kind != kind {
		return noRecords
	}
	return answer{exists: true, records: []dns.RR{record}}
}

// addresses answers with those addresses that are of the asked family.
func (q question) addresses(addresses []string) answer {
	a := answer{exists: true}
	for _, text := range addresses {
		if record := q.address(text); record != nil && record.Header().Rrtype == q.kind {
			a.records = append(a.records, record)
		}
	}
	return a
}

// bothFamilies are the records of all addresses, for the additional section.
func (q question) bothFamilies(addresses []string) (records []dns.RR) {
	for _, text := range addresses {
		if record := q.address(text); record != nil {
			records = append(records, record)
		}
	}
	return records
}

// address is the A or AAAA record of an address, nil if the text is none.
func (q question) address(text string) dns.RR {
	address, err := netip.ParseAddr(text)
	switch {
	case err != nil:
		return nil
	case address.Unmap().Is4():
		return &dns.A{Hdr: q.header(dns.TypeA), A: net.IP(address.Unmap().AsSlice())}
	}
	return &dns.AAAA{Hdr: q.header(dns.TypeAAAA), AAAA: net.IP(address.AsSlice())}
}
