package lab

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// The front is how clients outside of the lab reach its API: one address on the bridge, behind which is always a server that is
// ready. It stands for the load balancer that a real cluster has, is outside of all partitions, and carries bytes: TLS is
// between the client and the server. The lab's own machines do not use it.

const (
	// frontEvery is how often servers are asked whether they are ready, frontPatience how long they may take to say so.
	frontEvery    = 250 * time.Millisecond
	frontPatience = time.Second
)

// frontURL is what kubeconfigs name.
func frontURL() string { return "https://" + frontPlace() }

// frontPlace is where the front is. It is not at port 6443, which on this machine a `kontiki dev` may have, at all addresses.
func frontPlace() string { return net.JoinHostPort(frontAddress.String(), "16443") }

// startFront starts the front, if it does not run.
func (l *Lab) startFront() error {
	if l.Front.running() {
		return nil
	}
	log, err := os.OpenFile(filepath.Join(l.Dir, "front.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(l.Program, "lab", "front", "--dir", l.Dir)
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if l.Front, err = startHelper(cmd, l.Dir); err != nil {
		return fmt.Errorf("lab: front: %w: %s", err, lastWords(log.Name()))
	}
	return l.save()
}

// ServeFront carries connections to servers that are ready until ctx ends. It writes a line to ready when it has begun.
func (l *Lab) ServeFront(ctx context.Context, ready io.Writer, log *slog.Logger) error {
	listener, err := net.Listen("tcp", frontPlace())
	if err != nil {
		return fmt.Errorf("lab: front: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	f := &front{log: log}
	for _, h := range l.Hosts {
		if h.Server {
			f.servers = append(f.servers, &server{name: h.Name, address: net.JoinHostPort(h.Address, "6443"), open: map[net.Conn]bool{}})
		}
	}
	if f.client, err = l.probeClient(); err != nil {
		return err
	}
	if _, err := io.WriteString(ready, readyLine); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, s := range f.servers {
		group.Go(func() error { return f.watch(ctx, s) })
	}
	group.Go(func() error {
		for {
			client, err := listener.Accept()
			if err != nil {
				return fmt.Errorf("lab: front: %w", err)
			}
			group.Go(func() error { f.serve(ctx, client); return nil })
		}
	})
	return group.Wait()
}

// front carries connections to servers.
type front struct {
	servers []*server
	client  *http.Client // asks whether they are ready
	log     *slog.Logger
}

// server is one of those behind the front.
type server struct {
	name, address string

	mu    sync.Mutex // guards what follows
	ready bool
	open  map[net.Conn]bool // connections to it
}

// probeClient knows the cluster's authority; whether a server is ready is for everybody to know.
func (l *Lab) probeClient() (*http.Client, error) {
	pem, err := os.ReadFile(filepath.Join(l.Hosts[0].DataDir(), "pki", "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	// It speaks HTTP/1.1, where a connection on which an answer does not come in time is given up.
	return &http.Client{Timeout: frontPatience, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}, nil
}

// watch asks a server again and again whether it is ready. Connections to one that is not any more end, so that their clients
// come back and get another.
// One that only takes long is asked once more: on a busy machine that is no sign of anything.
func (f *front) watch(ctx context.Context, s *server) error {
	slow := false
	for {
		ready, timeout := f.ask(ctx, s)
		if !timeout || slow {
			s.set(ready, f.log)
		}
		slow = timeout
		select {
		case <-time.After(frontEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ask says whether a server is ready, and whether it did not answer in time.
func (f *front) ask(ctx context.Context, s *server) (ready, timeout bool) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+s.address+"/readyz", nil)
	if err != nil {
		return false, false
	}
	response, err := f.client.Do(request)
	if err != nil {
		late := net.Error(nil)
		return false, errors.As(err, &late) && late.Timeout()
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode == http.StatusOK, false
}

func (s *server) set(ready bool, log *slog.Logger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready == ready {
		return
	}
	log.Info("server changed", "server", s.name, "ready", ready)
	s.ready = ready
	if ready {
		return
	}
	for conn := range s.open {
		_ = conn.Close()
	}
}

// add notes a connection to the server, remove forgets it.
func (s *server) add(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[conn] = true
}

func (s *server) remove(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, conn)
}

func (s *server) isReady() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready
}

// serve carries one connection until one of its ends is closed.
func (f *front) serve(ctx context.Context, client net.Conn) {
	defer client.Close()
	s, conn := f.dial(ctx)
	if conn == nil {
		return
	}
	s.add(conn)
	defer s.remove(conn)
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = client.Close(); _ = conn.Close() })
	defer stop()
	done := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{client, conn}, {conn, client}} {
		go func() {
			_, _ = io.Copy(pair[1], pair[0])
			done <- struct{}{}
		}()
	}
	<-done // TLS has no half-closed connections to keep
	_ = client.Close()
	_ = conn.Close()
	<-done
}

// dial connects to a server, in no order, but those that are ready come first; nil if none is there.
func (f *front) dial(ctx context.Context) (*server, net.Conn) {
	var order, rest []*server
	for _, i := range rand.Perm(len(f.servers)) {
		if s := f.servers[i]; s.isReady() {
			order = append(order, s)
		} else {
			rest = append(rest, s)
		}
	}
	for _, s := range append(order, rest...) {
		dialer := net.Dialer{Timeout: frontPatience}
		conn, err := dialer.DialContext(ctx, "tcp", s.address)
		if err == nil {
			return s, conn
		}
	}
	return nil, nil
}
