package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kontiki/internal/apiclient"
	"kontiki/internal/bench/load"
	"kontiki/internal/lab"
)

const (
	labUps   = 3 // times that a lab is started
	services = 1000
	backends = 10 // endpoints of each Service
)

// asElsewhere are flags that a lab's servers have of their own, set back to what every other server has.
var asElsewhere = []string{"--snapshot-count=10000", "--snapshot-interval=30s", "--node-monitor-grace-period=40s"}

// benchLab measures a cluster of three on this machine. It needs root and nft, and that no other lab runs.
func benchLab(ctx context.Context, bin, dir string, kills int) error {
	if os.Geteuid() != 0 {
		report("lab", "left out: it needs root")
		return nil
	}
	program, err := filepath.Abs(filepath.Join(bin, "kontiki"))
	if err != nil {
		return err
	}
	options := lab.Options{Dir: filepath.Join(dir, "lab"), Program: program, Runtime: "runc", Servers: 3, ServerFlags: asElsewhere, Progress: io.Discard}
	var l *lab.Lab
	var ups []time.Duration
	for range labUps {
		if l != nil {
			if err := l.Down(); err != nil {
				return err
			}
		}
		began := time.Now()
		if l, err = lab.Up(ctx, options); err != nil {
			return err
		}
		ups = append(ups, time.Since(began))
	}
	reportSpread(fmt.Sprintf("lab up to three Ready nodes, %d times", labUps), ups)
	return errors.Join(measureLab(ctx, l, kills), l.Down())
}

func measureLab(ctx context.Context, l *lab.Lab, kills int) error {
	if err := reportIdleServers(ctx, l); err != nil {
		return err
	}
	if err := benchServices(ctx, l); err != nil {
		return fmt.Errorf("services: %w", err)
	}
	return benchFailOver(ctx, l, kills)
}

// reportSpread prints the middle and the end of some durations.
func reportSpread(what string, all []time.Duration) {
	m := load.Measure(slices.Clone(all), time.Second)
	report(what, "p50 %s, p99 %s, longest %s", m.P50.Round(time.Millisecond), m.P99.Round(time.Millisecond), slices.Max(all).Round(time.Millisecond))
}

// reportIdleServers prints what each server uses while nobody asks it for anything.
func reportIdleServers(ctx context.Context, l *lab.Lab) error {
	if err := load.Pause(ctx, 20*time.Second); err != nil {
		return err
	}
	before := map[string]int{}
	for _, h := range l.Hosts {
		ticks, err := ticksOf(h.PID)
		if err != nil {
			return err
		}
		before[h.Name] = ticks
	}
	if err := load.Pause(ctx, idleFor); err != nil {
		return err
	}
	for _, h := range l.Hosts {
		ticks, err := ticksOf(h.PID)
		if err != nil {
			return err
		}
		memory, err := memoryOf(h.PID)
		if err != nil {
			return err
		}
		report(h.Name+" of three servers, idle", "%s, %.1f %% of a core", inMemory(memory), float64(ticks-before[h.Name])/idleFor.Seconds())
	}
	return nil
}

// labClient calls a machine's API server, "" the front.
func labClient(l *lab.Lab, machine string) (kubernetes.Interface, error) {
	config, err := l.Config(machine)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(apiclient.Config(config, "bench/kontiki"))
}

// benchFailOver kills the leader again and again, and measures how long it takes until a write is accepted through the front.
func benchFailOver(ctx context.Context, l *lab.Lab, kills int) error {
	client, err := labClient(l, "")
	if err != nil {
		return err
	}
	var took []time.Duration
	for n := range kills {
		whole, cancel := context.WithTimeout(ctx, patience)
		err := l.AwaitWhole(whole)
		cancel()
		if err != nil {
			return err
		}
		leader, _, err := l.Roles(ctx)
		if err != nil {
			return err
		}
		h, err := l.Host(leader)
		if err != nil {
			return err
		}
		began := time.Now()
		if err := h.Kill(); err != nil {
			return err
		}
		if err := writeUntilAccepted(ctx, client, fmt.Sprint("fail-over-", n)); err != nil {
			return err
		}
		took = append(took, time.Since(began))
		if err := h.Start(); err != nil {
			return err
		}
	}
	reportSpread(fmt.Sprintf("leader killed to the next accepted write, %d times", kills), took)
	return nil
}

// writeUntilAccepted creates a ConfigMap, as often as it takes.
func writeUntilAccepted(ctx context.Context, client kubernetes.Interface, name string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		try, done := context.WithTimeout(ctx, time.Second)
		_, err := client.CoreV1().ConfigMaps("default").Create(try, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: name}}, metav1.CreateOptions{})
		done()
		if err == nil || ctx.Err() != nil {
			return err
		}
		if err := load.Pause(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

// benchServices makes many Services and measures how long a change of one's endpoints takes until the rule is in the kernel of the
// first machine. `nft monitor` says when.
func benchServices(ctx context.Context, l *lab.Lab) error {
	client, err := labClient(l, l.Hosts[0].Name)
	if err != nil {
		return err
	}
	monitor := exec.CommandContext(ctx, "ip", "netns", "exec", "kontiki-lab-"+l.Hosts[0].Name, "nft", "monitor", "rules")
	out, err := monitor.StdoutPipe()
	if err != nil {
		return err
	}
	if err := monitor.Start(); err != nil {
		return err
	}
	defer func() { _ = monitor.Process.Kill(); _ = monitor.Wait() }()
	lines := make(chan string, 1<<16) // more than all rules; when it is full, the monitor waits
	go func() {
		defer close(lines)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			lines <- scan.Text()
		}
	}()
	began := time.Now()
	if err := makeServices(ctx, client, lines); err != nil {
		return err
	}
	report(fmt.Sprintf("%d Services of %d endpoints, all rules in place after", services, backends), "%s", time.Since(began).Round(time.Millisecond))
	if err := load.Pause(ctx, 3*time.Second); err != nil {
		return err
	}
	var took []time.Duration
	for n := range 50 {
		address := fmt.Sprint("10.245.200.", n+1)
		slice := endpointSlice(n*services/50, address)
		began := time.Now()
		if _, err := client.DiscoveryV1().EndpointSlices("default").Update(ctx, slice, metav1.UpdateOptions{}); err != nil {
			return err
		}
		if err := awaitLine(ctx, lines, address+" "); err != nil {
			return err
		}
		took = append(took, time.Since(began))
	}
	reportSpread(fmt.Sprintf("endpoint of one of %d Services changed to rule in place", services), took)
	return nil
}

// makeServices returns when the rules of all are there.
func makeServices(ctx context.Context, client kubernetes.Interface, lines <-chan string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for n := range services {
		group.Go(func() error {
			service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: serviceName(n)}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
			if _, err := client.CoreV1().Services("default").Create(ctx, service, metav1.CreateOptions{}); err != nil {
				return err
			}
			_, err := client.DiscoveryV1().EndpointSlices("default").Create(ctx, endpointSlice(n, ""), metav1.CreateOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return awaitServices(context.WithoutCancel(ctx), lines)
}

// awaitServices waits until a rule of each Service was told of.
func awaitServices(ctx context.Context, lines <-chan string) error {
	missing := map[string]bool{}
	for n := range services {
		missing[fmt.Sprintf(" cluster/default/%s/tcp/80 ", serviceName(n))] = true
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for len(missing) > 0 {
		select {
		case line, open := <-lines:
			if !open {
				return errors.New("nft monitor has ended")
			}
			if at := strings.Index(line, " cluster/"); at >= 0 && strings.Contains(line, " dnat ") {
				name, _, _ := strings.Cut(line[at+1:], " ")
				delete(missing, " "+name+" ")
			}
		case <-ctx.Done():
			return fmt.Errorf("rules of %d Services are missing", len(missing))
		}
	}
	return nil
}

func awaitLine(ctx context.Context, lines <-chan string, text string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		select {
		case line, open := <-lines:
			if !open {
				return errors.New("nft monitor has ended")
			}
			if strings.Contains(line, text) {
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("no rule has %s", text)
		}
	}
}

func serviceName(n int) string { return "bench-" + strconv.Itoa(n) }

// endpointSlice has all endpoints of a Service; other, if not "", takes the place of the first one.
func endpointSlice(n int, other string) *discoveryv1.EndpointSlice {
	protocol, port := corev1.ProtocolTCP, int32(8080)
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: serviceName(n), Labels: map[string]string{discoveryv1.LabelServiceName: serviceName(n)}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new(string), Protocol: &protocol, Port: &port}},
	}
	for i := range backends {
		address := fmt.Sprintf("10.245.%d.%d", (n*backends+i)/250, (n*backends+i)%250+1)
		if i == 0 && other != "" {
			address = other
		}
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}})
	}
	return slice
}
