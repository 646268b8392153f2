package dns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
)

const (
	// upstreamTimeout bounds the wait for one answer of one upstream resolver.
	upstreamTimeout = 2 * time.Second
	// udpSize is the largest answer over UDP that is asked for and sent (dnsflagday.net/2020).
	udpSize = 1232
)

// forwarder asks the host's resolvers.
type forwarder struct {
	upstreams []string      // "address:port"
	good      atomic.Uint32 // index of the one that answered last
}

// ask sends a query to the resolver that answered last and, if it does not answer, to the others.
func (f *forwarder) ask(ctx context.Context, query *dns.Msg) (*dns.Msg, error) {
	if len(f.upstreams) == 0 {
		return nil, errNoUpstream
	}
	first := f.good.Load()
	var failed error
	for i := range uint32(len(f.upstreams)) {
		n := (first + i) % uint32(len(f.upstreams))
		reply, err := exchange(ctx, query, f.upstreams[n])
		if err == nil && reply.Rcode != dns.RcodeServerFailure && reply.Rcode != dns.RcodeRefused {
			f.good.CompareAndSwap(first, n)
			return reply, nil
		}
		if err == nil {
			err = fmt.Errorf("%s answers %s", f.upstreams[n], dns.RcodeToString[reply.Rcode])
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

// exchange asks one resolver over UDP and, when the answer does not fit, over TCP.
func exchange(ctx context.Context, query *dns.Msg, upstream string) (*dns.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, upstreamTimeout)
	defer cancel()
	client := dns.Client{Net: "udp", UDPSize: udpSize}
	reply, _, err := client.ExchangeContext(ctx, query, upstream)
	if err == nil && reply.Truncated {
		client.Net = "tcp"
		reply, _, err = client.ExchangeContext(ctx, query, upstream)
	}
	return reply, err
}

// HostUpstreams reads the resolvers of a resolv.conf, but for those in own: a server that asked itself would ask for ever.
// The error says that the file cannot be read; a file without resolvers is none.
func HostUpstreams(path string, own []netip.Addr) ([]string, error) {
	conf, err := dns.ClientConfigFromFile(path)
	if err != nil {
		return nil, err
	}
	var upstreams []string
	for _, server := range conf.Servers {
		address, err := netip.ParseAddr(server)
		if err != nil || contains(own, address) {
			continue
		}
		upstreams = append(upstreams, net.JoinHostPort(server, portOr53(conf.Port)))
	}
	return upstreams, nil
}

func contains(all []netip.Addr, address netip.Addr) bool {
	for _, a := range all {
		if a.Unmap() == address.Unmap() {
			return true
		}
	}
	return false
}

func portOr53(port string) string {
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "53"
	}
	return port
}
