package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Exec runs a command in a container and returns its combined output and exit code.
type Exec func(ctx context.Context, containerID string, command []string, timeout time.Duration) (output string, exitCode int32, err error)

// Target is what a probe looks at.
type Target struct {
	ContainerID string
	PodIP       string
	Container   *corev1.Container // names its ports
}

// maxOutput bounds what is read of an HTTP body for a failure message.
const maxOutput = 10 << 10

// Check makes one probe. nil is success; the error's text is what the Unhealthy event says.
func Check(ctx context.Context, p *corev1.ProbeHandler, t Target, exec Exec) error {
	switch {
	case p.Exec != nil:
		deadline, _ := ctx.Deadline()
		output, code, err := exec(ctx, t.ContainerID, p.Exec.Command, time.Until(deadline))
		switch {
		case err != nil:
			return fmt.Errorf("command %q: %w", strings.Join(p.Exec.Command, " "), err)
		case code != 0:
			return errors.New(output)
		}
		return nil
	case p.HTTPGet != nil:
		return HTTPGet(ctx, p.HTTPGet, t)
	case p.TCPSocket != nil:
		port, err := Port(p.TCPSocket.Port, t.Container)
		if err != nil {
			return err
		}
		return dial(ctx, or(p.TCPSocket.Host, t.PodIP), port)
	case p.GRPC != nil:
		return grpcHealth(ctx, p.GRPC, t)
	}
	return errors.New("missing probe handler")
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// Port resolves a number or a name of one of the container's ports.
func Port(p intstr.IntOrString, c *corev1.Container) (int, error) {
	if p.Type == intstr.Int {
		return p.IntValue(), nil
	}
	for _, cp := range c.Ports {
		if cp.Name == p.StrVal {
			return int(cp.ContainerPort), nil
		}
	}
	if n, err := strconv.Atoi(p.StrVal); err == nil {
		return n, nil
	}
	return 0, fmt.Errorf("%w: %q", ErrPort, p.StrVal)
}

func dial(ctx context.Context, host string, port int) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return conn.Close()
}

// client follows no redirect to another host, keeps no connection, and takes any certificate: a
// probe asks whether the container answers, not who it is.
func client(host string) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true,
			Proxy:             nil,
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if req.URL.Hostname() != host || len(via) >= 10 {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
}

// HTTPGet succeeds on any status from 200 to 399. It serves lifecycle hooks too.
func HTTPGet(ctx context.Context, g *corev1.HTTPGetAction, t Target) error {
	port, err := Port(g.Port, t.Container)
	if err != nil {
		return err
	}
	u, err := url.Parse(g.Path)
	if err != nil {
		u = &url.URL{Path: g.Path}
	}
	u.Scheme, u.Host = strings.ToLower(or(string(g.Scheme), "http")), net.JoinHostPort(or(g.Host, t.PodIP), strconv.Itoa(port))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "kube-probe/1.37")
	req.Header.Set("Accept", "*/*")
	for _, h := range g.HTTPHeaders {
		if strings.EqualFold(h.Name, "Host") {
			req.Host = h.Value
			continue
		}
		req.Header.Add(h.Name, h.Value)
	}
	resp, err := client(u.Hostname()).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxOutput)) // the status is the answer
	if resp.StatusCode < http.StatusOK || resp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("HTTP probe failed with statuscode: %d", resp.StatusCode)
	}
	return nil
}

// grpcHealth asks the standard gRPC health service.
func grpcHealth(ctx context.Context, g *corev1.GRPCAction, t Target) error {
	conn, err := grpc.NewClient("passthrough:///"+net.JoinHostPort(t.PodIP, strconv.Itoa(int(g.Port))),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithUserAgent("kube-probe/1.37"))
	if err != nil {
		return err
	}
	defer conn.Close()
	req := &healthpb.HealthCheckRequest{}
	if g.Service != nil {
		req.Service = *g.Service
	}
	resp, err := healthpb.NewHealthClient(conn).Check(ctx, req)
	switch {
	case status.Code(err) == codes.Unimplemented:
		return errors.New("error: this server does not implement the grpc health protocol (grpc.health.v1.Health)")
	case err != nil:
		return fmt.Errorf("error: health rpc probe failed: %w", err)
	case resp.Status != healthpb.HealthCheckResponse_SERVING:
		return fmt.Errorf("service unhealthy (responded with %q)", resp.Status)
	}
	return nil
}
