package ledger

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func newWriter(client *fake.Clientset) *Writer {
	return &Writer{Name: "w", Namespace: "default", Client: client, Every: 100 * time.Millisecond, Timeout: time.Second}
}

// TestWritesAreTriedAgain: a write that failed, with its effect or without, is acknowledged in the end, and counted once.
func TestWritesAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		tries := 0
		client.PrependReactor("create", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
			tries++
			object := action.(clienttesting.CreateAction).GetObject().(*corev1.ConfigMap)
			switch {
			case object.Name == "w-2" && tries < 10:
				return true, nil, errors.New("connection refused")
			case object.Name == "w-3" && tries < 20: // it happens, and the answer is lost
				_ = client.Tracker().Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "w-3", Namespace: "default", Labels: object.Labels}, Data: object.Data})
				return true, nil, errors.New("connection reset")
			}
			return false, nil, nil
		})
		w := newWriter(client)
		ctx, cancel := context.WithTimeout(t.Context(), 950*time.Millisecond)
		defer cancel()
		require.NoError(t, w.Run(ctx, time.Minute))
		report := w.Report()
		require.Greater(t, report.Acknowledged, 5)
		require.Greater(t, report.Longest, 100*time.Millisecond)
		require.Empty(t, report.Unknown)
		require.NoError(t, w.Check(t.Context()))

		require.NoError(t, client.CoreV1().ConfigMaps("default").Delete(t.Context(), "w-3", metav1.DeleteOptions{}))
		err := w.Check(t.Context())
		require.ErrorIs(t, err, ErrLost)
		require.ErrorContains(t, err, "w-3")
	})
}

// TestPatienceEnds: what is never acknowledged is an error.
func TestPatienceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		client.PrependReactor("create", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("connection refused")
		})
		w := newWriter(client)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorContains(t, w.Run(ctx, 3*time.Second), "w-1 is not acknowledged 3s after the end")
		require.Equal(t, []string{"w-1"}, w.Report().Unknown)
	})
}

// TestNamesThatDoNotWork: nobody insists on what will never be acknowledged, and what others wrote is not taken for one's own.
func TestNamesThatDoNotWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		require.NoError(t, newWriter(client).Count(t.Context(), 2, 0))
		another := newWriter(client)
		began := time.Now()
		require.ErrorIs(t, another.Count(t.Context(), 2, time.Minute), ErrTaken)
		require.Zero(t, another.Report().Acknowledged)

		client.PrependReactor("create", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "W_1", nil)
		})
		require.True(t, apierrors.IsInvalid(another.Run(t.Context(), time.Minute)))
		require.Zero(t, time.Since(began))
	})
}

// TestWatcherNotices: events that are missing, come twice or out of order are noticed.
func TestWatcherNotices(t *testing.T) {
	added := func(name, revision string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: revision}}
	}
	for _, c := range []struct {
		name   string
		events []*corev1.ConfigMap
		wrong  string // "": nothing is
	}{
		{"all", []*corev1.ConfigMap{added("w-1", "5"), added("w-2", "9")}, ""},
		{"missing", []*corev1.ConfigMap{added("w-1", "5")}, "did not tell of w-2"},
		{"twice", []*corev1.ConfigMap{added("w-1", "5"), added("w-2", "9"), added("w-2", "10")}, "w-2 was told twice"},
		{"again", []*corev1.ConfigMap{added("w-1", "5"), added("w-2", "5")}, "came after revision 5"},
		{"back", []*corev1.ConfigMap{added("w-2", "9"), added("w-1", "5")}, "revision 5 came after revision 9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			of := newWriter(fake.NewClientset())
			of.acknowledged("w-1", 0)
			of.acknowledged("w-2", 0)
			w := &Watcher{seen: map[string]int{}}
			for _, object := range c.events {
				w.event(watch.Added, object)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := w.Await(ctx, of)
			if c.wrong == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, ErrWatch)
			require.ErrorContains(t, err, c.wrong)
		})
	}
}
