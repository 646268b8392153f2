package testcluster

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"kontiki/apiserver/admission"
	"kontiki/apiserver/storage/etcd"
	"kontiki/internal/controlplane"
	"kontiki/internal/pki"
	"kontiki/mvcc"
)

// readyTimeout is how long a cluster may take to become ready before the test fails.
const readyTimeout = 30 * time.Second

// Cluster is a control plane that belongs to a test.
type Cluster struct {
	// Dir is the data directory, laid out as `kontiki dev` does.
	Dir string
	// PKI has every certificate.
	PKI *pki.PKI
	// Log is what components should log to.
	Log *slog.Logger

	t      testing.TB
	change func(*controlplane.Config)
	plane  *controlplane.ControlPlane
	port   int
}

// Start starts a control plane and waits until it is ready.
func Start(t testing.TB) *Cluster { return StartOn(t, etcd.Config{}) }

// StartWithAccounts is Start with all admission plugins, those too that rely on controllers: pods then need their
// ServiceAccount, new nodes are not ready, and claims that are deleted stay until somebody lets go of them.
func StartWithAccounts(t testing.TB) *Cluster {
	t.Helper()
	return StartAdmitting(t, admission.Config{})
}

// StartAdmitting is StartWithAccounts with a say in which admission plugins run.
func StartAdmitting(t testing.TB, plugins admission.Config) *Cluster {
	t.Helper()
	return StartWith(t, func(c *controlplane.Config) { c.Admission = plugins })
}

// StartOn starts a control plane whose store is an etcd, if store names endpoints, and waits until it is ready.
func StartOn(t testing.TB, store etcd.Config) *Cluster {
	t.Helper()
	return StartWith(t, func(c *controlplane.Config) { c.Outside = store })
}

// StartWith starts a control plane, and waits until it is ready. change has the last word on its configuration, now and at
// every Restart.
func StartWith(t testing.TB, change func(*controlplane.Config)) *Cluster {
	t.Helper()
	return start(t, pki.Options{}, change)
}

// StartWithKeys is StartWithAccounts with a say in the certificates, and in the time that they are judged by.
func StartWithKeys(t testing.TB, options pki.Options) *Cluster {
	t.Helper()
	return start(t, options, func(c *controlplane.Config) { c.Admission = admission.Config{} })
}

func start(t testing.TB, keys pki.Options, change func(*controlplane.Config)) *Cluster {
	t.Helper()
	keys.NodeName = "testcluster"
	c := &Cluster{Dir: t.TempDir(), Log: logger(), t: t, change: change}
	var err error
	c.PKI, err = pki.Open(filepath.Join(c.Dir, "pki"), keys)
	require.NoError(t, err)
	c.open()
	t.Cleanup(func() { require.NoError(t, c.plane.Close()) })
	require.NoError(t, c.PKI.WriteKubeconfig(c.Kubeconfig(), c.plane.URL(), c.PKI.Client(pki.Admin)))
	return c
}

// controllersNeeded are the admission plugins that rely on controllers: somebody makes accounts, says that nodes are ready,
// and takes finalizers away.
var controllersNeeded = []string{"ServiceAccount", "TaintNodesByCondition", "StorageObjectInUseProtection"}

// open opens the control plane on the port that it had before, or on a free one.
func (c *Cluster) open() {
	c.t.Helper()
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: c.port})
	require.NoError(c.t, err)
	c.port = listener.Addr().(*net.TCPAddr).Port
	config := controlplane.Config{
		Dir:         filepath.Join(c.Dir, "store"),
		PKI:         c.PKI,
		Listener:    listener,
		ClusterCIDR: netip.MustParsePrefix("10.244.0.0/16"),
		ServiceCIDR: netip.MustParsePrefix("10.96.0.0/16"),
		Log:         c.Log,
		Admission:   admission.Config{Disabled: controllersNeeded},
	}
	c.change(&config)
	c.plane, err = controlplane.Open(config)
	require.NoError(c.t, err)
	ctx, cancel := context.WithTimeout(c.t.Context(), readyTimeout)
	defer cancel()
	require.NoError(c.t, c.plane.WaitReady(ctx))
}

// Restart stops the API server and the store and starts them again on the same port and data.
// Clients see broken connections, as after a restart of the process.
func (c *Cluster) Restart() {
	c.t.Helper()
	require.NoError(c.t, c.plane.Close())
	c.open()
}

// Compact makes the store forget what was before a resourceVersion.
func (c *Cluster) Compact(resourceVersion string) {
	c.t.Helper()
	revision, err := strconv.ParseInt(resourceVersion, 10, 64)
	require.NoError(c.t, err)
	require.NoError(c.t, c.plane.Compact(c.t.Context(), revision))
}

// Stored returns what the store here has under a key, as bytes.
func (c *Cluster) Stored(key string) []byte {
	c.t.Helper()
	found, err := c.plane.Store().Range(c.t.Context(), mvcc.RangeRequest{Key: []byte(key)})
	require.NoError(c.t, err)
	require.Len(c.t, found.KVs, 1, key)
	return found.KVs[0].Value
}

// REST is how the holder of one of pki's identities calls the API server.
func (c *Cluster) REST(identity string) *rest.Config {
	return c.plane.Client(identity, c.PKI.Client(identity))
}

// NodeREST is how the agent of a node calls the API server.
func (c *Cluster) NodeREST(node string) *rest.Config {
	c.t.Helper()
	client, _, err := c.PKI.Node(node, []net.IP{net.IPv4(127, 0, 0, 1)})
	require.NoError(c.t, err)
	return c.plane.Client("agent", client)
}

// Admin is a client that may do everything.
func (c *Cluster) Admin() kubernetes.Interface {
	c.t.Helper()
	client, err := kubernetes.NewForConfig(c.REST(pki.Admin))
	require.NoError(c.t, err)
	return client
}

// SecretToken implements controllers.SecretTokens.
func (c *Cluster) SecretToken(namespace, secret, account, accountUID string) (string, error) {
	return c.plane.SecretToken(namespace, secret, account, accountUID)
}

// Kubeconfig is the path of the admin's kubeconfig.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.Dir, "admin.kubeconfig") }

// Go runs a component until the test ends, or until stop is called. The test fails if the component
// returns an error, or ends before it is told to.
func (c *Cluster) Go(name string, run func(ctx context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := run(ctx)
		if ctx.Err() == nil {
			c.t.Errorf("%s ended by itself: %v", name, err)
		} else if err != nil && err != context.Canceled {
			c.t.Errorf("%s: %v", name, err)
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	c.t.Cleanup(stop)
	return stop
}

func logger() *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(os.Getenv("KONTIKI_TEST_LOG"))); err != nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}
