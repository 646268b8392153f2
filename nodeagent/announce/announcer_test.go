package announce

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"kontiki/internal/loadbalancer"
)

// lan is a network in which machines hold addresses as kernels do: each until its time is over.
type lan struct {
	mu    sync.Mutex // guards the fields below
	until map[netip.Addr]map[string]time.Time
	cut   map[string]bool // machines that the others do not hear
}

// holders are the machines that answer for an address.
func (l *lan) holders(address netip.Addr) (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, until := range l.until[address] {
		if time.Now().Before(until) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// port is a machine's wire in a lan.
type port struct {
	*lan
	name string
}

func (p port) hold(address netip.Addr, seconds int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until[address] == nil {
		p.until[address] = map[string]time.Time{}
	}
	p.until[address][p.name] = time.Now().Add(time.Duration(seconds) * time.Second)
	return nil
}

func (p port) has(address netip.Addr) (bool, error) {
	return slices.Contains(p.holders(address), p.name), nil
}

func (p port) drop(address netip.Addr) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.until[address], p.name)
	return nil
}

func (p port) tell(netip.Addr) error { return nil }

func (p port) isElsewhere(_ context.Context, address netip.Addr) (bool, error) {
	holders := p.holders(address)
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(holders, func(h string) bool { return h != p.name && p.cut[h] == p.cut[p.name] }), nil
}

// reach is a client that may be cut off from the API server. Its informers are not: they are then only not new.
type reach struct {
	kubernetes.Interface
	mu    sync.Mutex // guards what follows
	down  bool
	hangs bool // what is out of reach does not say so
}

var errCut = errors.New("cut off")

func (r *reach) set(down bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = down
}

func (r *reach) err(ctx context.Context) error {
	r.mu.Lock()
	down, hangs := r.down, r.hangs
	r.mu.Unlock()
	if !down {
		return nil
	}
	if hangs {
		<-ctx.Done()
	}
	return errCut
}

func (r *reach) CoordinationV1() coordinationclient.CoordinationV1Interface {
	return reachLeases{r.Interface.CoordinationV1(), nil, r}
}

type reachLeases struct {
	coordinationclient.CoordinationV1Interface
	coordinationclient.LeaseInterface
	r *reach
}

func (l reachLeases) Leases(namespace string) coordinationclient.LeaseInterface {
	return reachLeases{nil, l.CoordinationV1Interface.Leases(namespace), l.r}
}

func (l reachLeases) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, o metav1.PatchOptions, sub ...string) (*coordinationv1.Lease, error) {
	if err := l.r.err(ctx); err != nil {
		return nil, err
	}
	return l.LeaseInterface.Patch(ctx, name, kind, data, o, sub...)
}

func (l reachLeases) List(ctx context.Context, o metav1.ListOptions) (*coordinationv1.LeaseList, error) {
	if err := l.r.err(ctx); err != nil {
		return nil, err
	}
	return l.LeaseInterface.List(ctx, o)
}

// crowd is some nodes with announcers in one lan. It must be made in a synctest bubble.
type crowd struct {
	t       *testing.T
	lan     *lan
	client  kubernetes.Interface
	reaches map[string]*reach
	stops   map[string]func()
}

func newCrowd(t *testing.T, names ...string) *crowd {
	c := &crowd{
		t: t, lan: &lan{until: map[netip.Addr]map[string]time.Time{}, cut: map[string]bool{}}, client: fake.NewClientset(),
		reaches: map[string]*reach{}, stops: map[string]func(){},
	}
	for _, name := range names {
		c.join(name)
	}
	return c
}

// join adds a node.
func (c *crowd) join(name string) {
	_, err := c.client.CoreV1().Nodes().Create(c.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(c.t, err)
	_, err = c.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(c.t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(c.t, err)
	c.start(name)
}

func (c *crowd) start(name string) {
	ctx, cancel := context.WithCancel(c.t.Context())
	c.reaches[name] = &reach{Interface: c.client}
	factory := informers.NewSharedInformerFactory(c.client, 0)
	a, err := New(Config{Node: name, Client: c.reaches[name], Informers: factory})
	require.NoError(c.t, err)
	a.wire = port{c.lan, name}
	factory.Start(ctx.Done())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = a.Run(ctx)
		factory.Shutdown()
	}()
	c.stops[name] = func() { cancel(); <-done }
}

func (c *crowd) stopAll() {
	for _, stop := range c.stops {
		stop()
	}
}

func (c *crowd) service(name string, addresses ...string) {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}
	for _, a := range addresses {
		s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: a})
	}
	s.Status.Conditions = []metav1.Condition{{Type: loadbalancer.Assigned, Status: metav1.ConditionTrue}}
	_, err := c.client.CoreV1().Services("ns").Create(c.t.Context(), s, metav1.CreateOptions{})
	require.NoError(c.t, err)
}

// watch looks at the address every 250 ms for so long, and returns who answered in turn, "a a+b b" for instance.
func (c *crowd) watch(address netip.Addr, during time.Duration) string {
	var out []string
	for range int(during / (250 * time.Millisecond)) {
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
		now := strings.Join(c.lan.holders(address), "+")
		if now == "" {
			now = "-"
		}
		if len(out) == 0 || out[len(out)-1] != now {
			out = append(out, now)
		}
	}
	return strings.Join(out, " ")
}

// TestFailOver goes through what may happen to the node that announces: at no moment do two answer, but where they cannot
// know of each other.
func TestFailOver(t *testing.T) {
	address := netip.MustParseAddr("192.0.2.100")
	first := owner(address, []string{"a", "b", "c"})
	rest := slices.DeleteFunc([]string{"a", "b", "c"}, func(n string) bool { return n == first })
	second := owner(address, rest)
	both := strings.Join(slices.Sorted(slices.Values([]string{first, second})), "+")
	moved := fmt.Sprintf("%s - %s", first, second)
	for _, c := range []struct {
		name       string
		do, undo   func(*crowd)
		want, back string
	}{
		{
			"agent killed, then started", func(c *crowd) { c.stops[first]() }, func(c *crowd) { c.start(first) },
			moved, first,
		},
		{
			"agent restarted at once", func(c *crowd) { c.stops[first](); c.start(first) }, func(*crowd) {}, first, first,
		},
		{
			"API server out of its reach", func(c *crowd) { c.reaches[first].set(true) }, func(c *crowd) { c.reaches[first].set(false) },
			// It cannot know that it is taken for dead until it asks the network: both may answer for less than a period.
			fmt.Sprintf("%s %s", first, second), first,
		},
		{
			"API server out of everybody's reach", func(c *crowd) {
				for _, r := range c.reaches {
					r.set(true)
				}
			}, func(c *crowd) {
				for _, r := range c.reaches {
					r.set(false)
				}
			}, first, first,
		},
		{
			"network cut in two", func(c *crowd) { c.lan.cut[first] = true; c.reaches[first].set(true) }, func(c *crowd) { delete(c.lan.cut, first); c.reaches[first].set(false) },
			first + " " + both, "",
		},
		{
			"node excluded", func(c *crowd) { c.exclude(first, `"true"`) }, func(c *crowd) { c.exclude(first, "null") }, second, first,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				crowd := newCrowd(t, "a", "b", "c")
				defer crowd.stopAll()
				crowd.service("s", address.String(), "2001:db8::100")
				time.Sleep(5 * time.Second)
				require.Equal(t, first, crowd.watch(address, 10*time.Second))
				c.do(crowd)
				got := crowd.watch(address, 20*time.Second)
				if c.name == "API server out of its reach" {
					got = strings.Replace(got, both+" ", "", 1)
				}
				require.Equal(t, c.want, got)
				c.undo(crowd)
				got = crowd.watch(address, 20*time.Second)
				if c.back != "" { // nobody answers for the moment between
					require.Equal(t, c.back, strings.TrimPrefix(strings.TrimPrefix(got, second+" "), "- "))
				}
				require.Equal(t, first, got[strings.LastIndex(got, " ")+1:], "it has settled")
				require.NoError(t, crowd.client.CoreV1().Services("ns").Delete(t.Context(), "s", metav1.DeleteOptions{}))
				crowd.watch(address, 250*time.Millisecond)
				require.Equal(t, "-", crowd.watch(address, 10*time.Second))
			})
		})
	}
}

// TestDeadStayDead: a node that is long dead is owed nothing when the API server was out of everybody's reach for a while: who
// has its address keeps it.
func TestDeadStayDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		address, names := netip.MustParseAddr("192.0.2.100"), []string{"a", "b", "c"}
		first := owner(address, names)
		second := owner(address, slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == first }))
		crowd := newCrowd(t, names...)
		defer crowd.stopAll()
		crowd.service("s", address.String())
		time.Sleep(5 * time.Second)
		crowd.stops[first]()
		require.Equal(t, fmt.Sprintf("%s - %s", first, second), crowd.watch(address, 30*time.Second))
		for _, down := range []bool{true, false} {
			for _, r := range crowd.reaches {
				r.set(down)
			}
			require.Equal(t, second, crowd.watch(address, 20*time.Second), "down: %v", down)
		}
	})
}

func (c *crowd) exclude(node, value string) {
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, corev1.LabelNodeExcludeBalancers, value)
	_, err := c.client.CoreV1().Nodes().Patch(c.t.Context(), node, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(c.t, err)
}
