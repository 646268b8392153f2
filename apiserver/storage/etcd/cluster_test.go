package etcd_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"kontiki/apiserver/storage/etcd"
	"kontiki/internal/etcdtest"
	"kontiki/internal/pki"
	"kontiki/internal/testcluster"
	"kontiki/mvcc"
)

// startCluster starts an API server whose store is an etcd that only talks TLS, to clients with a certificate.
func startCluster(t *testing.T) (*testcluster.Cluster, *etcdtest.Server, etcd.Config) {
	dir := t.TempDir()
	p, err := pki.Open(dir, pki.Options{})
	require.NoError(t, err)
	e := etcdtest.StartWith(t, etcdtest.Options{
		CertFile: filepath.Join(dir, "store-server.crt"), KeyFile: filepath.Join(dir, "store-server.key"),
		CAFile: filepath.Join(dir, "store-ca.crt"),
	})
	config := etcd.Config{Endpoints: []string{e.URL()}, TLS: p.StoreClient(), RequestTimeout: time.Second}
	return testcluster.StartOn(t, config), e, config
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func create(t *testing.T, maps corev1client.ConfigMapInterface, name string) *corev1.ConfigMap {
	t.Helper()
	made, err := maps.Create(t.Context(), configMap(name), metav1.CreateOptions{})
	require.NoError(t, err)
	return made
}

// added waits for the ADDED event of an object.
func added(t *testing.T, w apiwatch.Interface, name string) {
	t.Helper()
	select {
	case event := <-w.ResultChan():
		require.Equal(t, apiwatch.Added, event.Type)
		require.Equal(t, name, event.Object.(*corev1.ConfigMap).Name)
	case <-time.After(patience):
		require.Fail(t, "no event for "+name)
	}
}

func TestAPIServerOnEtcd(t *testing.T) {
	c, e, config := startCluster(t)
	_, err := os.Stat(filepath.Join(c.Dir, "store"))
	require.ErrorIs(t, err, os.ErrNotExist, "no member runs here")
	maps := c.Admin().CoreV1().ConfigMaps("default")

	first := create(t, maps, "first")
	w, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: first.ResourceVersion})
	require.NoError(t, err)
	defer w.Stop()
	for i := range 10 {
		name := fmt.Sprint("m", i)
		create(t, maps, name)
		added(t, w, name)
	}
	list, err := maps.List(t.Context(), metav1.ListOptions{Limit: 4})
	require.NoError(t, err)
	require.Len(t, list.Items, 4)
	next, err := maps.List(t.Context(), metav1.ListOptions{Limit: 4, Continue: list.Continue})
	require.NoError(t, err)
	require.Equal(t, list.ResourceVersion, next.ResourceVersion)

	outside := openURL(t, config)
	stored, err := outside.Range(t.Context(), mvcc.RangeRequest{Key: []byte("/registry/configmaps/default/first")})
	require.NoError(t, err)
	require.Len(t, stored.KVs, 1, "objects are where Kubernetes keeps them")

	last := create(t, maps, "last")
	added(t, w, "last")
	c.Compact(last.ResourceVersion)
	c.Restart() // so that nothing is answered from memory
	_, err = maps.List(t.Context(), metav1.ListOptions{Limit: 4, Continue: list.Continue})
	require.True(t, apierrors.IsResourceExpired(err), "%v", err)
	old, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: first.ResourceVersion})
	if err == nil {
		event := <-old.ResultChan()
		require.Equal(t, apiwatch.Error, event.Type)
		err = apierrors.FromObject(event.Object)
	}
	require.True(t, apierrors.IsResourceExpired(err), "%v", err)

	status := outside.Status(t.Context())
	require.Len(t, status.Endpoints, 1)
	require.Equal(t, e.URL(), status.Endpoints[0].Endpoint)
	require.Empty(t, status.Endpoints[0].Error)
	require.True(t, status.Endpoints[0].Leader)
	require.NotEmpty(t, status.Endpoints[0].Version)
}

// Without the right certificate nobody gets in, and the reason is told.
func TestTLSIsChecked(t *testing.T) {
	_, e, config := startCluster(t)
	other, err := pki.Open(t.TempDir(), pki.Options{})
	require.NoError(t, err)
	// A request may be over before its handshake is, on a busy machine.
	told := func(config etcd.Config) {
		config.RequestTimeout = 300 * time.Millisecond
		store := openURL(t, config)
		require.Eventually(t, func() bool {
			_, err := store.Revision(t.Context())
			require.Error(t, err)
			return strings.Contains(err.Error(), "certificate")
		}, patience, time.Millisecond)
	}
	strangers := config
	strangers.TLS = other.StoreClient()
	told(strangers)
	told(etcd.Config{Endpoints: []string{e.URL()}})
}

// Etcd goes away and comes back under an API server with an informer: reads and writes fail clearly
// meanwhile, and afterwards the informer has every object that was acknowledged.
func TestEtcdGoesAwayAndComesBack(t *testing.T) {
	c, e, _ := startCluster(t)
	maps := c.Admin().CoreV1().ConfigMaps("default")
	create(t, maps, "before")
	store, stop := informer(t, maps)
	defer stop()

	e.Stop()
	require.Eventually(t, func() bool {
		_, err := maps.Create(t.Context(), configMap("during"), metav1.CreateOptions{})
		require.Error(t, err)
		return apierrors.IsServiceUnavailable(err) // the first one may have an unknown outcome: a timeout
	}, patience, time.Millisecond)
	_, err := maps.List(t.Context(), metav1.ListOptions{})
	require.Error(t, err, "a consistent read must not be answered from memory")
	cached, err := maps.List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	require.NoError(t, err, "one that may be old is")
	require.NotEmpty(t, cached.Items)

	e.Start()
	require.Eventually(t, func() bool {
		_, err := maps.List(t.Context(), metav1.ListOptions{})
		return err == nil
	}, patience, 10*time.Millisecond)
	for i := range 10 {
		create(t, maps, fmt.Sprint("after", i))
	}
	list, err := maps.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(store.ListKeys()) == len(list.Items) }, patience, time.Millisecond)
	for _, name := range []string{"before", "after0", "after9"} {
		_, found, err := store.GetByKey("default/" + name)
		require.NoError(t, err)
		require.True(t, found, name)
	}
}

// informer follows all ConfigMaps of the namespace.
func informer(t *testing.T, maps corev1client.ConfigMapInterface) (toolscache.Store, func()) {
	store, controller := toolscache.NewInformerWithOptions(toolscache.InformerOptions{
		ListerWatcher: &toolscache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return maps.List(ctx, o) },
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
				return maps.Watch(ctx, o)
			},
		},
		ObjectType: &corev1.ConfigMap{},
		Handler:    toolscache.ResourceEventHandlerFuncs{},
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		controller.RunWithContext(ctx)
	}()
	require.True(t, toolscache.WaitForCacheSync(ctx.Done(), controller.HasSynced))
	return store, func() { cancel(); <-done }
}
