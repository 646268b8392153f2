package scheduler

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// popAt pops and says how much later it was.
func popAt(t *testing.T, q *queue) (string, time.Duration) {
	t.Helper()
	start := time.Now()
	pod, ok := q.pop(t.Context())
	require.True(t, ok)
	return pod.Name, time.Since(start)
}

func TestQueueOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		q.set(testPod("first"), true)
		time.Sleep(time.Millisecond)
		q.set(testPod("second"), true)
		q.set(testPod("urgent", func(p *corev1.Pod) { p.Spec.Priority = ptr.To(int32(10)) }), true)
		q.set(testPod("gone"), true)
		q.remove("gone")
		for _, want := range []string{"urgent", "first", "second"} {
			name, _ := popAt(t, q)
			require.Equal(t, want, name)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, ok := q.pop(ctx)
		require.False(t, ok)
	})
}

func TestQueueWakesAndBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		q.set(testPod("p"), true)
		popAt(t, q)
		q.park("p")
		_, waited := popAt(t, q)
		require.Equal(t, parkedAtMost, waited, "nothing happened")

		q.park("p")
		q.wake()
		_, waited = popAt(t, q)
		require.Equal(t, 2*backoffBase, waited, "woken, after the back-off of the second attempt")

		q.wake() // while it is being tried
		q.park("p")
		_, waited = popAt(t, q)
		require.Equal(t, 4*backoffBase, waited, "the wake-up was not lost")

		q.retry("p")
		_, waited = popAt(t, q)
		require.Equal(t, 8*backoffBase, waited)

		q.park("p")
		q.set(testPod("p"), false)
		q.set(testPod("p"), true)
		_, waited = popAt(t, q)
		require.Zero(t, waited, "its spec changed")

		q.remove("p")
		q.park("p") // it was bound meanwhile
		require.Empty(t, q.pods)
		require.Empty(t, q.resting)
	})
}

func TestBackoffIsBounded(t *testing.T) {
	require.Equal(t, backoffBase, backoffFor(1))
	require.Equal(t, backoffMax, backoffFor(1000))
}
