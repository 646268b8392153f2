package leader

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

const d = 3 * time.Second // the Duration of these tests

// inWorld runs a test in virtual time.
func inWorld(t *testing.T, f func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		f(newWorld(t))
	})
}

// after lets time pass, and returns what has happened.
func (w *world) after(passed time.Duration) []string {
	time.Sleep(passed) // virtual
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	history := w.history
	w.history, w.times = nil, nil
	return history
}

// Who is cut off stops 2D/3 after it began to send its last renewal; another takes over D after that, and not a moment later.
func TestHolderIsCutOff(t *testing.T) {
	inWorld(t, func(w *world) {
		first := w.candidate("first", d)
		require.Equal(t, []string{"first begins"}, w.after(0))
		second, third := w.candidate("second", d), w.candidate("third", d)
		require.Empty(t, w.after(10*d))
		w.set(first.link, true, false) // right after a renewal: ten D are thirty of its periods
		require.Empty(t, w.after(2*d/3-time.Millisecond))
		require.Positive(t, first.fence.left())
		require.Equal(t, []string{"first ends"}, w.after(time.Millisecond))
		require.LessOrEqual(t, first.fence.left(), time.Duration(0))
		require.Empty(t, w.after(d/3-time.Millisecond))
		took := w.after(time.Millisecond)
		require.Len(t, took, 1)
		require.Contains(t, []string{"second begins", "third begins"}, took[0])
		w.set(first.link, false, false)
		require.Empty(t, w.after(10*d), "who comes back waits as everybody else")
		for _, c := range []*candidate{first, second, third} {
			c.stop()
		}
	})
}

// Who stops gives the Lease back, and who waits has it in the same moment.
func TestGivenBack(t *testing.T) {
	inWorld(t, func(w *world) {
		first := w.candidate("first", d)
		w.after(d)
		second := w.candidate("second", d)
		w.after(d)
		first.stop()
		require.Equal(t, []string{"first ends", "second begins"}, w.after(0))
		second.stop()
	})
}

// Who was killed and is started again need not wait for its own Lease; who has another's name does.
func TestFormerLife(t *testing.T) {
	inWorld(t, func(w *world) {
		first := w.candidate("first", d)
		w.after(d)
		w.set(first.link, true, false) // as good as dead
		again := w.candidate("first", d)
		require.Equal(t, []string{"first begins"}, w.after(0))
		w.set(first.link, false, false)
		require.Equal(t, []string{"first ends"}, w.after(2*d/3), "the first life finds that somebody else has it")
		require.Empty(t, w.after(10*d), "and does not take it back")
		again.stop()
		first.stop()
	})
}

// While nobody can write, the Lease runs out; the holder has it again as soon as it can, and nobody else wants it before.
func TestNoQuorum(t *testing.T) {
	inWorld(t, func(w *world) {
		first := w.candidate("first", d)
		w.after(0)
		second := w.candidate("second", d)
		w.after(d)
		for _, c := range []*candidate{first, second} {
			w.set(c.link, true, false)
		}
		require.Equal(t, []string{"first ends"}, w.after(10*d))
		for _, c := range []*candidate{first, second} {
			w.set(c.link, false, false)
		}
		began := w.after(d / 12)
		require.Len(t, began, 1, "it is over for both of them")
		first.stop()
		second.stop()
	})
}

// A renewal that arrives counts, also if its answer does not: nobody takes over, and the holder goes on when it hears again.
func TestAnswersAreLost(t *testing.T) {
	inWorld(t, func(w *world) {
		first := w.candidate("first", d)
		w.after(0)
		second := w.candidate("second", d)
		w.after(d + d/3 - time.Millisecond)
		w.set(first.link, false, true)
		require.Empty(t, w.after(time.Millisecond)) // it renews, and waits for the answer
		require.Equal(t, []string{"first ends"}, w.after(d/3))
		w.set(first.link, false, false)
		require.Equal(t, []string{"first begins"}, w.after(2*d/3+d/12), "the request that waits for its answer is given up, its own term is not waited for")
		require.Empty(t, w.after(d))
		first.stop()
		second.stop()
	})
}

// A Lease that somebody deletes is made again, by one of them.
func TestLeaseIsDeleted(t *testing.T) {
	inWorld(t, func(w *world) {
		first := w.candidate("first", d)
		w.after(0)
		second := w.candidate("second", d)
		w.after(d)
		w.remove()
		happened := w.after(d)
		require.Len(t, happened, 2, "%v", happened)
		require.Contains(t, happened, "first ends")
		w.mu.Lock()
		require.NotNil(t, w.lease)
		w.mu.Unlock()
		first.stop()
		second.stop()
	})
}

// What it costs: 3/D writes a second, however many candidates there are.
func TestWrites(t *testing.T) {
	inWorld(t, func(w *world) {
		all := []*candidate{w.candidate("first", d), w.candidate("second", d), w.candidate("third", d)}
		w.after(d)
		w.mu.Lock()
		before := w.writes
		w.mu.Unlock()
		w.after(100 * d)
		w.mu.Lock()
		require.Equal(t, 300, w.writes-before)
		w.mu.Unlock()
		for _, c := range all {
			c.stop()
		}
	})
}

// Whatever happens, never can two of them write; and when all is well somebody can, soon.
func TestNeverTwo(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inWorld(t, func(w *world) {
				dice := rand.New(rand.NewPCG(seed, 0))
				var all []*candidate
				for i := range 3 {
					all = append(all, w.candidate(fmt.Sprint("c", i), d))
				}
				for range 300 {
					c := all[dice.IntN(len(all))]
					w.set(c.link, dice.IntN(3) == 0, dice.IntN(4) == 0)
					for range dice.IntN(40) {
						time.Sleep(100 * time.Millisecond) // virtual
						synctest.Wait()
						w.atMostOne(all)
					}
				}
				for _, c := range all {
					w.set(c.link, false, false)
				}
				w.after(2 * d)
				require.Equal(t, 1, w.atMostOne(all))
				for _, c := range all {
					c.stop()
				}
			})
		})
	}
}

// atMostOne counts who can write.
func (w *world) atMostOne(all []*candidate) (n int) {
	var who []string
	for _, c := range all {
		if c.fence.left() > 0 {
			who = append(who, c.name)
		}
	}
	require.LessOrEqual(w.t, len(who), 1, "%v", who)
	return len(who)
}

// A process that was paused and goes on has not noticed yet that its Lease is over: its requests are refused all the same.
func TestFenceGoesByTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fence{}
		sent := 0
		transport := f.wrap(roundTrip(func(*http.Request) (*http.Response, error) { sent++; return &http.Response{}, nil }))
		try := func(method string) error {
			r, err := http.NewRequestWithContext(t.Context(), method, "http://anywhere/", nil)
			require.NoError(t, err)
			_, err = transport.RoundTrip(r)
			return err
		}
		require.ErrorIs(t, try(http.MethodPut), ErrNotLeader)
		f.open(time.Now().Add(time.Second))
		require.NoError(t, try(http.MethodPut))
		time.Sleep(time.Second) // virtual
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			require.ErrorIs(t, try(method), ErrNotLeader)
		}
		require.Equal(t, 1, sent)
		require.NoError(t, try(http.MethodGet))
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
