package apiload

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"kontiki/internal/apiclient"
	"kontiki/internal/bench/load"
)

// Config of a Run.
type Config struct {
	REST *rest.Config
	Each time.Duration // how long each load runs; 0 means 3 s
	Only []string      // names of loads; none means all
	// Definitions is how many are installed at once; 0 means 500.
	Definitions int
	// Connections are shared by the clients of a load; 0 means 8.
	Connections int
	// Memory tells how many MiB the server takes; nil: nobody knows.
	Memory func() int
	// Report prints one figure: what it is, the figure, and what is aimed at.
	Report func(what, figure, aim string)
}

// namespace is the bench's own.
const namespace = "kontiki-bench"

// runner is a Run.
type runner struct {
	Config
	clients []kubernetes.Interface // one for each connection
	json    kubernetes.Interface
	plains  []rest.Interface // as clients, for bytes of JSON
}

type namedLoad struct {
	name string
	run  func(*runner, context.Context) error
}

// The loads in the order in which they run: those of built-in kinds, and those of custom resources.
var builtInLoads = []namedLoad{
	{"create", (*runner).creates},
	{"update", (*runner).updates},
	{"increment", (*runner).increments},
	{"get", (*runner).gets},
	{"list", (*runner).lists},
	{"watch", (*runner).watchPaced},
	{"watchmax", (*runner).watchFlatOut},
}

var customLoads = []namedLoad{
	{"definitions", (*runner).manyDefinitions},
	{"bigdefinition", (*runner).bigDefinition},
	{"custom", (*runner).customs},
}

// Names of the loads.
func Names() []string { return append(BuiltInNames(), CustomNames()...) }

// BuiltInNames are the names of the loads on built-in kinds.
func BuiltInNames() []string { return namesOf(builtInLoads) }

// CustomNames are the names of the loads on custom resources.
func CustomNames() []string { return namesOf(customLoads) }

func namesOf(loads []namedLoad) (names []string) {
	for _, l := range loads {
		names = append(names, l.name)
	}
	return names
}

// Run runs the loads, one after the other. The first failure ends it.
func Run(ctx context.Context, config Config) error {
	r, err := newRunner(ctx, config)
	if err != nil {
		return err
	}
	for _, l := range slices.Concat(builtInLoads, customLoads) {
		if len(config.Only) > 0 && !slices.Contains(config.Only, l.name) {
			continue
		}
		if err := l.run(r, ctx); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	return nil
}

// newRunner connects, and makes what all loads need.
func newRunner(ctx context.Context, config Config) (*runner, error) {
	config.Each = cmp.Or(config.Each, 3*time.Second)
	config.Definitions = cmp.Or(config.Definitions, 500)
	config.Connections = cmp.Or(config.Connections, 8)
	r := &runner{Config: config}
	for range config.Connections {
		client, err := kubernetes.NewForConfig(ownConnection(apiclient.Config(config.REST, "bench/kontiki")))
		if err != nil {
			return nil, err
		}
		r.clients = append(r.clients, client)
		plain := apiclient.Config(config.REST, "bench/kontiki")
		plain.ContentType, plain.AcceptContentTypes = "application/json", "application/json"
		if r.json, err = kubernetes.NewForConfig(ownConnection(plain)); err != nil {
			return nil, err
		}
		r.plains = append(r.plains, r.json.CoreV1().RESTClient())
	}
	return r, r.prepare(ctx)
}

// ownConnection keeps client-go from sharing one connection between clients of equal configs.
func ownConnection(config *rest.Config) *rest.Config {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, address)
	}
	return config
}

// client of one of a load's clients.
func (r *runner) client(i int) kubernetes.Interface { return r.clients[i%len(r.clients)] }

// prepare makes the namespace, and the default ServiceAccount, which pods need where nobody makes it.
func (r *runner) prepare(ctx context.Context) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := r.client(0).CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	_, err := r.client(0).CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// run runs a load and reports it.
func (r *runner) run(ctx context.Context, what, aim string, clients int, op load.Op) error {
	m, err := load.Run(ctx, clients, r.Each, op)
	if err != nil {
		return err
	}
	r.Report(fmt.Sprintf("%s, %d clients", what, clients), figure(m), aim)
	return nil
}

func figure(m load.Measured) string {
	return fmt.Sprintf("%7.0f/s   p50 %8s   p99 %8s", m.PerSecond, m.P50.Round(10*time.Microsecond), m.P99.Round(10*time.Microsecond))
}
