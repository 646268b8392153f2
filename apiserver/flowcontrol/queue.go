package flowcontrol

import (
	"hash/fnv"
	"slices"
	"time"
)

// waiter is a request that waits for a seat.
type waiter struct {
	queue *queue
	seat  chan struct{} // closed when it has got one
	guess time.Duration // what it was counted with then
}

// queue holds the waiting requests of the flows that were dealt it. The controller's mu guards it.
type queue struct {
	waiting []*waiter
	running int
	// work is how many seconds of work the queue has had, on the clock of its level: the queue with the least
	// is served next. A request counts with a guess when it gets its seat, and with the truth when it ends.
	work float64
}

// push adds a request. A queue that was idle begins where the others are: it cannot save up time.
func (q *queue) push(w *waiter, now float64) {
	if len(q.waiting) == 0 && q.running == 0 {
		q.work = max(q.work, now)
	}
	q.waiting = append(q.waiting, w)
}

// remove takes a request out that does not wait any more.
func (q *queue) remove(w *waiter) {
	q.waiting = slices.DeleteFunc(q.waiting, func(other *waiter) bool { return other == w })
}

// begin counts a request that has got a seat.
func (q *queue) begin(guess time.Duration) {
	q.running++
	q.work += guess.Seconds()
}

// end counts what the request has really taken.
func (q *queue) end(guess, took time.Duration) {
	q.running--
	q.work += (took - guess).Seconds()
}

// hand deals size different queues out of n to a flow, the same ones each time. For example with 5 queues and
// a hand of 2: the hash modulo 5 is 3, so queue 3 is dealt; what is left of the hash modulo 4 is 3 again,
// the fourth of those that are left, 0 1 2 4: queue 4.
func hand(schema, flow string, n, size int) []int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(schema + "\x00" + flow)) // it never fails
	hash := h.Sum64()
	var dealt, sorted []int
	for left := n; left > n-size; left-- {
		card := int(hash % uint64(left))
		hash /= uint64(left)
		at := 0
		for ; at < len(sorted) && sorted[at] <= card; at++ {
			card++ // those that were dealt are not counted
		}
		sorted = slices.Insert(sorted, at, card)
		dealt = append(dealt, card)
	}
	return dealt
}
