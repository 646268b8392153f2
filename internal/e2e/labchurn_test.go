package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kontiki/internal/lab/ledger"
)

func isLoss(err error) bool { return errors.Is(err, ledger.ErrLost) || errors.Is(err, ledger.ErrWatch) }

// churn makes pods and Services, and takes them away; all the time it looks whether two of them have the same address.
type churn struct {
	t      *testing.T
	client kubernetes.Interface

	mu     sync.Mutex // guards what follows
	cycles int
	ready  []time.Duration // from a pod's create until it was ready
	looks  int
}

// churners is how many pods and Services there are at a time.
const churners = 4

func newChurn(t *testing.T, l *labCLI) *churn { return &churn{t: t, client: l.client("lab")} }

// start goes on until ctx ends.
func (c *churn) start(ctx context.Context, users *sync.WaitGroup) {
	for i := range churners {
		users.Go(func() {
			for n := 1; ctx.Err() == nil; n++ {
				c.cycle(ctx, i+churners*n)
			}
		})
	}
	users.Go(func() {
		for ctx.Err() == nil {
			c.look(ctx)
			pauseFor(ctx, 300*time.Millisecond)
		}
	})
}

// warm runs a pod on each machine, so that what is made once is made: images, bridges. It returns when they are gone.
func (c *churn) warm(ctx context.Context) {
	for i, machine := range soakMachines {
		c.cycleOn(ctx, -1-i, machine)
	}
	c.clear(ctx)
}

// cycle makes one Service with a pod, waits until the pod is ready, and takes both away. It gives up when ctx ends.
func (c *churn) cycle(ctx context.Context, n int) { c.cycleOn(ctx, n, "") }

// cycleOn is cycle for a pod on a machine, if it is not "".
func (c *churn) cycleOn(ctx context.Context, n int, machine string) {
	name := fmt.Sprintf("churn%d", n+len(soakMachines))
	app := map[string]string{"app": name, "churn": "yes"}
	meta := metav1.ObjectMeta{Name: name, Labels: app}
	service := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: app, Ports: []corev1.ServicePort{{Port: 80}}}}
	grace := int64(1)
	pod := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: &grace, NodeName: machine,
		Containers: []corev1.Container{{Name: "hello", Image: "kontiki.local/hello:latest", ImagePullPolicy: corev1.PullIfNotPresent}},
	}}
	began := time.Now()
	pods, services := c.client.CoreV1().Pods("default"), c.client.CoreV1().Services("default")
	c.until(ctx, func(ctx context.Context) bool {
		_, err := services.Create(ctx, service, metav1.CreateOptions{})
		return err == nil || apierrors.IsAlreadyExists(err)
	})
	c.until(ctx, func(ctx context.Context) bool {
		_, err := pods.Create(ctx, pod, metav1.CreateOptions{})
		return err == nil || apierrors.IsAlreadyExists(err)
	})
	isReady := c.until(ctx, func(ctx context.Context) bool {
		got, err := pods.Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err) || err == nil && podReady(got)
	})
	if isReady {
		c.mu.Lock()
		c.cycles++
		c.ready = append(c.ready, time.Since(began))
		c.mu.Unlock()
	}
	pauseFor(ctx, 2*time.Second)
	for _, remove := range []func(context.Context) error{
		func(ctx context.Context) error { return services.Delete(ctx, name, metav1.DeleteOptions{}) },
		func(ctx context.Context) error { return pods.Delete(ctx, name, metav1.DeleteOptions{}) },
	} {
		c.until(ctx, func(ctx context.Context) bool { err := remove(ctx); return err == nil || apierrors.IsNotFound(err) })
	}
}

// until calls f again and again; false if ctx ended before it said yes.
func (c *churn) until(ctx context.Context, f func(context.Context) bool) bool {
	for ctx.Err() == nil {
		try, cancel := context.WithTimeout(ctx, 5*time.Second)
		done := f(try)
		cancel()
		if done {
			return true
		}
		pauseFor(ctx, 100*time.Millisecond)
	}
	return false
}

func podReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// look compares the addresses of all that there is at one revision.
func (c *churn) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	services, err := c.client.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return // nobody is there to ask at the moment
	}
	pods, err := c.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	assert.NoError(c.t, twice(services.Items, pods.Items))
	c.mu.Lock()
	c.looks++
	c.mu.Unlock()
}

// twice is an error that names two owners of an address. A pod that is being deleted may have given back its address already,
// as one that has ended has.
func twice(services []corev1.Service, pods []corev1.Pod) error {
	owner := map[string]string{}
	take := func(address, by string) error {
		if other := owner[address]; other != "" {
			return fmt.Errorf("%s and %s both have the address %s", other, by, address)
		}
		owner[address] = by
		return nil
	}
	for _, s := range services {
		for _, address := range s.Spec.ClusterIPs {
			if address == corev1.ClusterIPNone {
				continue
			}
			if err := take(address, "Service "+s.Name); err != nil {
				return err
			}
		}
	}
	for _, p := range pods {
		if p.DeletionTimestamp != nil || p.Spec.HostNetwork || p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded {
			continue
		}
		for _, address := range p.Status.PodIPs {
			if err := take(address.IP, "pod "+p.Name+" on "+p.Spec.NodeName); err != nil {
				return err
			}
		}
	}
	return nil
}

// clear takes away all that is left, and waits until it is gone.
func (c *churn) clear(ctx context.Context) {
	eventually(c.t, time.Minute, func() string {
		pods, err := c.client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		services, err := c.client.CoreV1().Services("default").List(ctx, metav1.ListOptions{LabelSelector: "churn=yes"})
		if err != nil {
			return err.Error()
		}
		for _, pod := range pods.Items {
			_ = c.client.CoreV1().Pods("default").Delete(ctx, pod.Name, metav1.DeleteOptions{})
		}
		for _, service := range services.Items {
			_ = c.client.CoreV1().Services("default").Delete(ctx, service.Name, metav1.DeleteOptions{})
		}
		if n := len(pods.Items) + len(services.Items); n > 0 {
			return fmt.Sprintf("%d pods and Services are left", n)
		}
		return ""
	})
}

func (c *churn) report() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("pods and Services: %d came and went, ready %s; addresses were compared %d times", c.cycles, spread(c.ready), c.looks)
}

// TestTwice: two owners of an address are noticed.
func TestTwice(t *testing.T) {
	service := func(name, address string) corev1.Service {
		return corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{ClusterIPs: []string{address}}}
	}
	pod := func(name, address string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: address}}}}
	}
	going := pod("going", "10.244.0.2")
	going.DeletionTimestamp = &metav1.Time{}
	services := []corev1.Service{service("a", "10.96.0.1"), service("headless", "None"), service("none", "None")}
	assert.NoError(t, twice(services, []corev1.Pod{pod("a", "10.244.0.2"), going, pod("b", "10.244.0.3")}))
	assert.ErrorContains(t, twice(append(services, service("b", "10.96.0.1")), nil), "Service a and Service b both have the address 10.96.0.1")
	assert.ErrorContains(t, twice(nil, []corev1.Pod{pod("a", "10.244.0.2"), pod("b", "10.244.0.2")}), "both have the address 10.244.0.2")
}
