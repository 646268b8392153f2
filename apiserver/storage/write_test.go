package storage_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"kontiki/apiserver/storage"
	"kontiki/mvcc"
	"kontiki/watch"
	"kontiki/watch/watchtest"
)

func TestCreateThenGet(t *testing.T) {
	overAll(t, func(t *testing.T, e env) {
		s := e.configMaps()
		created := mustCreate(t, s, configMap("a", nil))
		require.Equal(t, strconv.FormatInt(created.Revision, 10), resourceVersion(created))
		got, err := s.Get(t.Context(), "t", "a", storage.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, created.Object(), got.Object())
		_, err = s.Create(t.Context(), configMap("a", nil), storage.CreateOptions{})
		require.ErrorIs(t, err, storage.ErrExists)
		_, err = s.Get(t.Context(), "t", "b", storage.GetOptions{})
		require.ErrorIs(t, err, storage.ErrNotFound)
		for _, name := range []string{"", ".", "..", "a/b", "a\x00"} {
			_, err = s.Get(t.Context(), "t", name, storage.GetOptions{})
			require.ErrorIs(t, err, storage.ErrInvalidName, "%q", name)
		}
	})
}

func TestObjectsAreStoredAsKubernetesStoresThem(t *testing.T) {
	overAll(t, func(t *testing.T, e env) {
		mustCreate(t, e.configMaps(), configMap("a", nil))
		want := "k8s\x00\n\x0f\n\x02v1\x12\tConfigMap\x12"
		require.Equal(t, want, e.stored(t, "/registry/configmaps/t/a")[:len(want)])

		custom := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Widget",
			"metadata": map[string]any{"name": "w", "namespace": "t", "resourceVersion": "5"},
			"spec":     map[string]any{"size": int64(9007199254740993)},
		}}
		s := e.Store(widgets())
		created := mustCreate(t, s, custom)
		require.JSONEq(t, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"t"},"spec":{"size":9007199254740993}}`,
			e.stored(t, "/registry/example.com/widgets/t/w"))
		size, _, _ := unstructured.NestedInt64(created.Object().(*unstructured.Unstructured).Object, "spec", "size")
		require.Equal(t, int64(9007199254740993), size)
	})
}

func TestEventsAreOneObjectInTwoGroups(t *testing.T) {
	overAll(t, func(t *testing.T, e env) {
		core, events := e.rows("", "v1", "events"), e.rows("events.k8s.io", "v1", "events")
		created := mustCreate(t, events, &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "t", Name: "e"}, Note: "hello"})
		require.Equal(t, "hello", created.Object().(*eventsv1.Event).Note)
		got, err := core.Get(t.Context(), "t", "e", storage.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, "hello", got.Object().(*corev1.Event).Message)
		require.Equal(t, resourceVersion(created), resourceVersion(got))
		require.Equal(t, "Event", got.Object().GetObjectKind().GroupVersionKind().Kind)
	})
}

func TestAP12_UpdateThatChangesNothingCostsNoRevision(t *testing.T) {
	overAll(t, func(t *testing.T, e env) {
		s := e.configMaps()
		created := mustCreate(t, s, configMap("a", nil))
		w := mustWatch(t, s, storage.WatchOptions{ResourceVersion: resourceVersion(created)})
		for range 5 {
			result := mustUpdate(t, s, "a", setData("k", "v"))
			require.False(t, result.Changed)
			require.Equal(t, created.Revision, result.Object.Revision)
		}
		result := mustUpdate(t, s, "a", func(current *watch.Object) (runtime.Object, error) { return current.Object(), nil })
		require.False(t, result.Changed)
		revision, err := e.kv.Revision(t.Context())
		require.NoError(t, err)
		require.Equal(t, created.Revision, revision)
		real := mustUpdate(t, s, "a", setData("k", "new")).Object
		require.Equal(t, []string{"MODIFIED a@" + resourceVersion(real)}, events(t, w, 1))
	})
}

func TestUpdateLosesNothingUnderContention(t *testing.T) {
	overAll(t, func(t *testing.T, e env) {
		s := e.configMaps()
		object := configMap("a", nil)
		object.Data["n"] = "0"
		mustCreate(t, s, object)
		var clients sync.WaitGroup
		for range 8 {
			clients.Go(func() {
				for range 10 {
					_, err := s.Update(t.Context(), "t", "a", storage.UpdateOptions{}, increment)
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		clients.Wait()
		got, err := s.Get(t.Context(), "t", "a", storage.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, "80", got.Object().(*corev1.ConfigMap).Data["n"])
	})
}

func increment(current *watch.Object) (runtime.Object, error) {
	next := current.Object().DeepCopyObject().(*corev1.ConfigMap)
	n, err := strconv.Atoi(next.Data["n"])
	next.Data["n"] = strconv.Itoa(n + 1)
	return next, err
}

func TestUpdateStartsFromTheNewestWhenTheCacheIsBehind(t *testing.T) {
	model := modelKV{watchtest.New()}
	e := newEnv(t, model, storage.Config{FreshWait: time.Millisecond})
	s := e.configMaps()
	mustCreate(t, s, configMap("a", nil))
	cached, err := s.Get(t.Context(), "t", "a", storage.GetOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { // the cache itself has it: what was read so far may have come from the store
		got, err := s.Get(t.Context(), "t", "a", storage.GetOptions{ResourceVersion: "0"})
		return err == nil && got.Revision == cached.Revision
	}, 10*time.Second, time.Millisecond)

	// Another server writes, and our feed does not hear of it.
	model.Hold()
	newest := mustUpdate(t, newEnv(t, model, storage.Config{}).configMaps(), "a", setData("k", "theirs"))
	stale, err := s.Get(t.Context(), "t", "a", storage.GetOptions{ResourceVersion: "0"})
	require.NoError(t, err)
	require.Equal(t, cached.Revision, stale.Revision)

	t.Run("a read does not believe the cache", func(t *testing.T) {
		got, err := s.Get(t.Context(), "t", "a", storage.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, newest.Object.Revision, got.Revision)
		list, err := s.List(t.Context(), storage.ListOptions{})
		require.NoError(t, err)
		require.Equal(t, newest.Object.Revision, list.Items[0].Revision)
	})
	t.Run("nor does a precondition", func(t *testing.T) {
		options := storage.UpdateOptions{ResourceVersion: resourceVersion(newest.Object), DryRun: true}
		_, err := s.Update(t.Context(), "t", "a", options, setData("k", "ours"))
		require.NoError(t, err)
	})
	t.Run("nor an update that changes nothing", func(t *testing.T) {
		result := mustUpdate(t, s, "a", setData("k", "v")) // what the cache still has
		require.True(t, result.Changed)
	})
	t.Run("nor one that does", func(t *testing.T) {
		result := mustUpdate(t, s, "a", setData("k2", "ours"))
		require.Equal(t, map[string]string{"k": "v", "k2": "ours"}, result.Object.Object().(*corev1.ConfigMap).Data)
	})
}

func TestAP35_Preconditions(t *testing.T) {
	overAll(t, func(t *testing.T, e env) {
		s := e.configMaps()
		first := mustCreate(t, s, configMap("a", nil))
		second := mustUpdate(t, s, "a", setData("k", "2"))
		for _, options := range []storage.UpdateOptions{{UID: "wrong"}, {ResourceVersion: resourceVersion(first)}} {
			_, err := s.Update(t.Context(), "t", "a", options, remove)
			var precondition *storage.PreconditionError
			require.ErrorAs(t, err, &precondition)
		}
		refused := errors.New("refused")
		_, err := s.Update(t.Context(), "t", "a", storage.UpdateOptions{}, func(*watch.Object) (runtime.Object, error) { return nil, refused })
		require.ErrorIs(t, err, refused)
		got, err := s.Get(t.Context(), "t", "a", storage.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, second.Object.Revision, got.Revision)

		result, err := s.Update(t.Context(), "t", "a", storage.UpdateOptions{UID: "uid-a", ResourceVersion: resourceVersion(got)}, remove)
		require.NoError(t, err)
		require.True(t, result.Deleted)
		require.Equal(t, "2", result.Object.Object().(*corev1.ConfigMap).Data["k"])
		require.Greater(t, result.Object.Revision, got.Revision)
		_, err = s.Update(t.Context(), "t", "a", storage.UpdateOptions{}, remove)
		require.ErrorIs(t, err, storage.ErrNotFound)
	})
}

func TestUpdateCreatesWhatIsMissing(t *testing.T) {
	overAll(t, func(t *testing.T, e env) {
		s := e.configMaps()
		upsert := func(current *watch.Object) (runtime.Object, error) {
			if current == nil {
				return configMap("a", nil), nil
			}
			return setData("k", "again")(current)
		}
		_, err := s.Update(t.Context(), "t", "a", storage.UpdateOptions{}, upsert)
		require.ErrorIs(t, err, storage.ErrNotFound)
		result, err := s.Update(t.Context(), "t", "a", storage.UpdateOptions{CreateMissing: true}, upsert)
		require.NoError(t, err)
		require.True(t, result.Created && result.Changed)
		result, err = s.Update(t.Context(), "t", "a", storage.UpdateOptions{CreateMissing: true}, upsert)
		require.NoError(t, err)
		require.True(t, !result.Created && result.Changed)
		_, err = s.Update(t.Context(), "t", "b", storage.UpdateOptions{CreateMissing: true, UID: "x"}, upsert)
		var precondition *storage.PreconditionError
		require.ErrorAs(t, err, &precondition)
	})
}

func TestAP45_DryRunTouchesNothing(t *testing.T) {
	overAll(t, func(t *testing.T, e env) {
		s := e.configMaps()
		mustCreate(t, s, configMap("a", nil))
		before, err := e.kv.Revision(t.Context())
		require.NoError(t, err)

		planned, err := s.Create(t.Context(), configMap("b", nil), storage.CreateOptions{DryRun: true})
		require.NoError(t, err)
		require.Empty(t, resourceVersion(planned))
		_, err = s.Create(t.Context(), configMap("a", nil), storage.CreateOptions{DryRun: true})
		require.ErrorIs(t, err, storage.ErrExists)
		svc, err := e.services().Create(t.Context(), service("s", ""), storage.CreateOptions{DryRun: true})
		require.NoError(t, err)
		require.NotEmpty(t, svc.Object().(*corev1.Service).Spec.ClusterIP)
		result, err := s.Update(t.Context(), "t", "a", storage.UpdateOptions{DryRun: true}, setData("k", "new"))
		require.NoError(t, err)
		require.Equal(t, "new", result.Object.Object().(*corev1.ConfigMap).Data["k"])
		result, err = s.Update(t.Context(), "t", "a", storage.UpdateOptions{DryRun: true}, remove)
		require.NoError(t, err)
		require.True(t, result.Deleted)

		after, err := e.kv.Revision(t.Context())
		require.NoError(t, err)
		require.Equal(t, before, after)
	})
}

func TestAP38_ClaimsAreFreedWithTheObject(t *testing.T) {
	overAll(t, func(t *testing.T, e env) {
		s := e.services()
		for range 20 {
			mustCreate(t, s, service("a", "10.96.0.17"))
			_, err := s.Create(t.Context(), service("b", "10.96.0.17"), storage.CreateOptions{})
			require.Error(t, err)
			require.Equal(t, "/registry/services/specs/t/a", e.stored(t, "/kontiki/claims/clusterip/10.96.0.17"))
			_, err = s.Update(t.Context(), "t", "a", storage.UpdateOptions{}, remove)
			require.NoError(t, err)
			require.Empty(t, e.stored(t, "/kontiki/claims/clusterip/10.96.0.17"))
		}
	})
}

func TestAP38_UpdateTakesAndReleasesClaims(t *testing.T) {
	overAll(t, func(t *testing.T, e env) {
		s := e.services()
		mustCreate(t, s, service("a", "10.96.0.17"))
		setIP := func(ip string) storage.Change {
			return func(current *watch.Object) (runtime.Object, error) {
				next := current.Object().DeepCopyObject().(*corev1.Service)
				next.Spec.ClusterIP, next.Spec.ClusterIPs = ip, []string{ip}
				return next, nil
			}
		}
		result := mustUpdate(t, s, "a", setIP("10.96.0.18"))
		require.Empty(t, e.stored(t, "/kontiki/claims/clusterip/10.96.0.17"))
		require.Equal(t, "/registry/services/specs/t/a", e.stored(t, "/kontiki/claims/clusterip/10.96.0.18"))
		require.Empty(t, e.stored(t, "/registry/ipaddresses/10.96.0.17"))
		require.NotEmpty(t, e.stored(t, "/registry/ipaddresses/10.96.0.18"))
		txnRevision := result.Object.Revision
		keys, err := e.kv.Range(t.Context(), mvcc.RangeRequest{Key: []byte("/kontiki/claims/clusterip/10.96.0.18")})
		require.NoError(t, err)
		require.Equal(t, txnRevision, keys.KVs[0].ModRevision, "claim and object are one transaction")
	})
}

func TestAP39_ConcurrentCreatesNeverShareAnAddress(t *testing.T) {
	overAll(t, func(t *testing.T, e env) {
		s := e.services()
		var clients sync.WaitGroup
		for c := range 8 {
			clients.Go(func() {
				for i := range 10 {
					if _, err := s.Create(t.Context(), service(fmt.Sprintf("s-%d-%d", c, i), ""), storage.CreateOptions{}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		clients.Wait()
		list, err := s.List(t.Context(), storage.ListOptions{})
		require.NoError(t, err)
		holders := map[string]string{}
		for _, o := range list.Items {
			svc := o.Object().(*corev1.Service)
			require.Empty(t, holders[svc.Spec.ClusterIP], "%s and %s", holders[svc.Spec.ClusterIP], svc.Name)
			holders[svc.Spec.ClusterIP] = svc.Name
		}
		require.Len(t, holders, 80)
	})
}

func TestClaimWithoutAllocationIsRefused(t *testing.T) {
	overAll(t, func(t *testing.T, e env) {
		row := widgets()
		row.Strategy.Claims = func(obj runtime.Object) []string {
			return []string{"/kontiki/claims/test/" + obj.(*unstructured.Unstructured).GetLabels()["claim"]}
		}
		s := e.Store(row)
		widget := func(name string) *unstructured.Unstructured {
			u := &unstructured.Unstructured{Object: map[string]any{}}
			u.SetName(name)
			u.SetNamespace("t")
			u.SetLabels(map[string]string{"claim": "x"})
			return u
		}
		mustCreate(t, s, widget("a"))
		_, err := s.Create(t.Context(), widget("b"), storage.CreateOptions{})
		var claim *storage.ClaimError
		require.ErrorAs(t, err, &claim)
		require.Equal(t, &storage.ClaimError{Claim: "/kontiki/claims/test/x", Holder: "/registry/example.com/widgets/t/a"}, claim)
	})
}

func TestCanceledContextEndsAWait(t *testing.T) {
	overAll(t, func(t *testing.T, e env) {
		s := e.configMaps()
		mustCreate(t, s, configMap("a", nil))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := s.Get(ctx, "t", "a", storage.GetOptions{ResourceVersion: "1000000"})
		require.ErrorIs(t, err, context.Canceled)
	})
}
