package policy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// probe is a packet, or a connection, that is tried.
type probe struct {
	from, to *host
	family   int
	network  string // "udp" or "tcp"
	port     int32
}

func (p probe) String() string {
	return fmt.Sprintf("%s→%s %s:%d v%d", p.from.name, p.to.name, p.network, p.port, 4+2*p.family)
}

func (p probe) target() string {
	return net.JoinHostPort(p.to.addresses[p.family], strconv.Itoa(int(p.port)))
}

// allProbes are every pair of hosts, both families, UDP to both ports and TCP to one.
func (w *world) allProbes() (all []probe) {
	for _, from := range hostNames {
		for _, to := range hostNames {
			for family := range 2 {
				all = append(all, probe{w.hosts[from], w.hosts[to], family, "udp", ports[0]}, probe{w.hosts[from], w.hosts[to], family, "udp", ports[1]})
				if to != "outside" || from != "outside" {
					all = append(all, probe{w.hosts[from], w.hosts[to], family, "tcp", ports[0]})
				}
			}
		}
	}
	return all
}

// listen has a host answer at ports and, at fencePort, echo what fences need.
func (w *world) listen(name string, ports ...int32) {
	for _, port := range append(ports, fencePort) {
		var packets net.PacketConn
		var conns net.Listener
		var err, err2 error
		w.spaces[name].In(func() {
			packets, err = net.ListenPacket("udp", fmt.Sprintf(":%d", port))
			conns, err2 = net.Listen("tcp", fmt.Sprintf(":%d", port))
		})
		require.NoError(w.t, errors.Join(err, err2))
		w.t.Cleanup(func() { packets.Close(); conns.Close() })
		go w.echo(packets)
		go w.accept(conns)
	}
}

// echo notes and answers datagrams until it is closed.
func (w *world) echo(packets net.PacketConn) {
	buffer := make([]byte, 200)
	for {
		n, from, err := packets.ReadFrom(buffer)
		if err != nil {
			return
		}
		w.note(w.arrived, string(buffer[:n]))
		_, _ = packets.WriteTo(buffer[:n], from)
	}
}

// accept notes and answers lines until it is closed.
func (w *world) accept(conns net.Listener) {
	for {
		conn, err := conns.Accept()
		if err != nil {
			return
		}
		w.t.Cleanup(func() { conn.Close() })
		go func() {
			buffer := make([]byte, 200)
			for {
				n, err := conn.Read(buffer)
				if err != nil {
					return
				}
				for _, id := range bytes.Fields(buffer[:n]) {
					w.note(w.arrived, string(id))
				}
				_, _ = conn.Write(buffer[:n])
			}
		}()
	}
}

func (w *world) note(in map[string]bool, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	in[id] = true
}

func (w *world) noted(in map[string]bool, id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return in[id]
}

// sender is a UDP socket that notes what it hears.
type sender struct{ net.PacketConn }

// sender returns the one socket of a host and family.
func (w *world) sender(name string, family int) *sender {
	key := fmt.Sprint(name, family)
	if s := w.clients[key]; s != nil {
		return s
	}
	var packets net.PacketConn
	var err error
	w.spaces[name].In(func() { packets, err = net.ListenPacket([]string{"udp4", "udp6"}[family], "") })
	require.NoError(w.t, err)
	w.t.Cleanup(func() { packets.Close() })
	w.clients[key] = &sender{packets}
	go func() {
		buffer := make([]byte, 200)
		for {
			n, _, err := packets.ReadFrom(buffer)
			if err != nil {
				return
			}
			w.note(w.echoed, string(buffer[:n]))
		}
	}()
	return w.clients[key]
}

func (w *world) send(name string, family int, to, id string) {
	w.t.Helper()
	address, err := net.ResolveUDPAddr("udp", to)
	require.NoError(w.t, err)
	_, err = w.sender(name, family).WriteTo([]byte(id), address)
	require.NoError(w.t, err)
}

// patience bounds what must come. Nothing that is tested depends on its length.
const patience = time.Minute

// fencePort is open on all hosts, nodes included.
const fencePort = 9

// fences waits until whatever was sent before has arrived, if it ever does: what follows it by the same ways has. First
// from every host to its node, then between the nodes, then from the nodes to their hosts, none of which is judged.
func (w *world) fences(step string) {
	w.t.Helper()
	var first, last []func() string
	for _, h := range w.hosts {
		for family := range 2 {
			gateway := w.gateway(h, family)
			first = append(first, func() string { return w.fence(step, h.name, family, gateway) })
			last = append(last, func() string { return w.fence(step, h.node, family, h.addresses[family]) })
		}
	}
	between := []func() string{}
	for family, address := range []string{"192.0.2.2", "fd00:2::2"} {
		between = append(between, func() string { return w.fence(step, "node1", family, address) })
	}
	for _, stage := range [][]func() string{first, between, last} {
		waiting := map[string]func() string{}
		for _, send := range stage {
			waiting[send()] = send
		}
		w.await(func() bool {
			for id, send := range waiting {
				if w.noted(w.echoed, id) {
					delete(waiting, id)
				} else {
					send()
				}
			}
			return len(waiting) == 0
		}, func() string { return fmt.Sprint("fences are missing: ", waiting) })
	}
}

func (w *world) gateway(h *host, family int) string {
	if h.pod == nil {
		return []string{"198.51.100.1", "fd00:51::1"}[family]
	}
	return []string{"10.244." + h.node[4:] + ".1", "fd00:244:" + h.node[4:] + "::1"}[family]
}

func (w *world) fence(step, from string, family int, to string) string {
	id := strings.Join([]string{"fence", step, from, to}, "/")
	w.send(from, family, net.JoinHostPort(to, strconv.Itoa(fencePort)), id)
	return id
}

// await polls until something is so.
func (w *world) await(holds func() bool, seen func() string) {
	w.t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			require.FailNow(w.t, "not within a minute: "+seen())
		}
		time.Sleep(2 * time.Millisecond) // a poll
	}
}

// connect dials until ctx ends, and says its id on the connection.
func (w *world) connect(ctx context.Context, p probe, id string) {
	var conn net.Conn
	var err error
	w.spaces[p.from.name].In(func() { conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", p.target()) })
	if err != nil {
		return
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if _, err := conn.Write([]byte(id + "\n")); err != nil {
		return
	}
	buffer := make([]byte, 200)
	if n, err := conn.Read(buffer); err == nil {
		w.note(w.echoed, strings.TrimSpace(string(buffer[:n])))
	}
}

// judge tries probes and requires that those that the model allows arrive and are answered, and no others.
func (w *world) judge(step string, policies model, probes []probe) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	var dialing sync.WaitGroup
	defer dialing.Wait()
	defer cancel()
	id := func(p probe) string { return strings.ReplaceAll(step+"/"+p.String(), " ", "/") }
	var allowed, denied []probe
	for _, p := range probes {
		protocol := corev1.Protocol(strings.ToUpper(p.network))
		if policies.allows(p.from, p.to, p.family, protocol, p.port) {
			allowed = append(allowed, p)
		} else {
			denied = append(denied, p)
		}
		if p.network == "tcp" {
			dialing.Go(func() { w.connect(ctx, p, id(p)) })
		} else {
			w.send(p.from.name, p.family, p.target(), id(p))
		}
	}
	var missing []probe
	w.await(func() bool {
		missing = nil
		for _, p := range allowed {
			if !w.noted(w.arrived, id(p)) || !w.noted(w.echoed, id(p)) {
				missing = append(missing, p)
			}
		}
		return len(missing) == 0
	}, func() string {
		return fmt.Sprintf("%s: allowed, but blocked: %v\n%s", step, missing, describe(policies))
	})
	w.fences(step)
	for _, p := range denied {
		require.False(w.t, w.noted(w.arrived, id(p)), "%s: denied, but arrived: %v\n%s", step, p, describe(policies))
	}
}
