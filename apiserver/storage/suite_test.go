package storage_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kontiki/apiserver/registry"
	"kontiki/apiserver/storage"
	"kontiki/apiserver/storage/etcd"
	"kontiki/internal/etcdtest"
	"kontiki/mvcc"
	"kontiki/raftstore"
	"kontiki/watch"
	"kontiki/watch/watchtest"
)

// compactableKV is a store of the suite.
type compactableKV interface {
	storage.KV
	compactTo(revision int64)
}

type modelKV struct{ *watchtest.Store }

func (m modelKV) compactTo(revision int64) { m.Compact(revision) }

type memberKV struct {
	*raftstore.Member
	t testing.TB
}

func (m memberKV) compactTo(revision int64) {
	require.NoError(m.t, m.Compact(m.t.Context(), revision))
}

type etcdKV struct {
	*etcd.Store
	t testing.TB
}

func (e etcdKV) compactTo(revision int64) {
	require.NoError(e.t, e.Compact(e.t.Context(), revision))
}

func openEtcd(t testing.TB) etcdKV {
	s, err := etcd.Open(etcd.Config{Endpoints: []string{etcdtest.Start(t).URL()}, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return etcdKV{s, t}
}

func openMember(t testing.TB) memberKV {
	m, err := raftstore.Open(raftstore.Config{
		Dir: t.TempDir(), NodeID: "a", Bootstrap: true, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, m.WaitReady(ctx))
	return memberKV{m, t}
}

// env is a backend over one of the stores.
type env struct {
	*storage.Backend
	kv    compactableKV
	table *registry.Table
}

func newEnv(t testing.TB, kv compactableKV, config storage.Config) env {
	backend := storage.Open(kv, config)
	t.Cleanup(backend.Close)
	return env{backend, kv, registry.Builtin(registry.Options{})}
}

func (e env) rows(group, version, resource string) *storage.Store {
	row := e.table.Lookup(schema.GroupVersionResource{Group: group, Version: version, Resource: resource})
	if row == nil {
		panic("no row " + resource)
	}
	return e.Store(row)
}

func (e env) configMaps() *storage.Store { return e.rows("", "v1", "configmaps") }
func (e env) services() *storage.Store   { return e.rows("", "v1", "services") }

// overAll runs a test over the model, over a real one-member store and over a real etcd.
func overAll(t *testing.T, test func(t *testing.T, e env)) {
	config := storage.Config{FreshWait: 50 * time.Millisecond}
	t.Run("model", func(t *testing.T) { test(t, newEnv(t, modelKV{watchtest.New()}, config)) })
	t.Run("member", func(t *testing.T) { test(t, newEnv(t, openMember(t), config)) })
	config.FreshWait = time.Second // etcd looks every 100 ms whether a watch has something to catch up on
	t.Run("etcd", func(t *testing.T) { test(t, newEnv(t, openEtcd(t), config)) })
}

func configMap(name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "t", Name: name, UID: types.UID("uid-" + name), Labels: labels},
		Data:       map[string]string{"k": "v"},
	}
}

func service(name, clusterIP string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "t", Name: name},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: clusterIP, ClusterIPs: []string{clusterIP}},
	}
}

func mustCreate(t testing.TB, s *storage.Store, obj runtime.Object) *watch.Object {
	t.Helper()
	created, err := s.Create(t.Context(), obj, storage.CreateOptions{})
	require.NoError(t, err)
	return created
}

// remove is a Change that deletes the object.
func remove(*watch.Object) (runtime.Object, error) { return nil, nil }

// setData is a Change that sets one key of a ConfigMap.
func setData(key, value string) storage.Change {
	return func(current *watch.Object) (runtime.Object, error) {
		next := current.Object().DeepCopyObject().(*corev1.ConfigMap)
		next.Data[key] = value
		return next, nil
	}
}

func mustUpdate(t testing.TB, s *storage.Store, name string, change storage.Change) storage.Result {
	t.Helper()
	result, err := s.Update(t.Context(), "t", name, storage.UpdateOptions{}, change)
	require.NoError(t, err)
	return result
}

func names(objects []*watch.Object) []string {
	out := []string{}
	for _, o := range objects {
		accessor, err := meta.Accessor(o.Object())
		if err != nil {
			panic(err)
		}
		out = append(out, accessor.GetName())
	}
	return out
}

func resourceVersion(o *watch.Object) string {
	accessor, err := meta.Accessor(o.Object())
	if err != nil {
		panic(err)
	}
	return accessor.GetResourceVersion()
}

// widgets is a row of a custom resource.
func widgets() *registry.Resource {
	gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	return &registry.Resource{
		GroupVersionResource: gvr, Kind: "Widget", Namespaced: true, Prefix: "/registry/example.com/widgets",
		New: func() runtime.Object { return &unstructured.Unstructured{} },
	}
}

// stored returns the bytes under a key.
func (e env) stored(t testing.TB, key string) string {
	t.Helper()
	result, err := e.kv.Range(t.Context(), mvcc.RangeRequest{Key: []byte(key)})
	require.NoError(t, err)
	if len(result.KVs) == 0 {
		return ""
	}
	return string(result.KVs[0].Value)
}

// setLabel is a Change that sets one label.
func setLabel(key, value string) storage.Change {
	return func(current *watch.Object) (runtime.Object, error) {
		next := current.Object().DeepCopyObject().(*corev1.ConfigMap)
		next.Labels = map[string]string{key: value}
		return next, nil
	}
}
