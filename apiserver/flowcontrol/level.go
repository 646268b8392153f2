package flowcontrol

import (
	"math"
	"slices"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
)

// level is a priority level at work. The controller's mu guards it.
type level struct {
	name, uid string
	exempt    bool // no limits

	nominal  int // seats it may always use
	lendable int // of these, what others may use while it does not
	borrow   int // how many seats beyond nominal it may use

	handSize   int
	queueLimit int
	queues     []*queue // none: who gets no seat is rejected

	running, waiting int
	now              float64       // the work of the queue that was served last: where idle queues begin
	guess            time.Duration // what a request takes, a moving average
}

// shares of the nominal seats.
func shares(spec *flowcontrolv1.PriorityLevelConfigurationSpec) int {
	switch {
	case spec.Limited != nil && spec.Limited.NominalConcurrencyShares != nil:
		return int(*spec.Limited.NominalConcurrencyShares)
	case spec.Limited != nil:
		return 30 // the API's default
	case spec.Exempt != nil && spec.Exempt.NominalConcurrencyShares != nil:
		return int(*spec.Exempt.NominalConcurrencyShares)
	}
	return 0
}

// configure sets what the object says. seats is the server's number of seats, all the sum of all shares.
func (l *level) configure(p *flowcontrolv1.PriorityLevelConfiguration, seats, all int) {
	l.name, l.uid = p.Name, string(p.UID)
	l.exempt = p.Spec.Type == flowcontrolv1.PriorityLevelEnablementExempt
	l.nominal = int(math.Ceil(float64(seats) * float64(shares(&p.Spec)) / float64(max(all, 1))))
	l.lendable, l.borrow = 0, math.MaxInt32
	if e := p.Spec.Exempt; e != nil && e.LendablePercent != nil {
		l.lendable = percent(l.nominal, *e.LendablePercent)
	}
	limited := p.Spec.Limited
	if limited == nil {
		return
	}
	if limited.LendablePercent != nil {
		l.lendable = percent(l.nominal, *limited.LendablePercent)
	}
	if limited.BorrowingLimitPercent != nil {
		l.borrow = percent(l.nominal, *limited.BorrowingLimitPercent)
	}
	l.configureQueues(limited.LimitResponse)
}

// configureQueues keeps queues that are in use: they are dealt no more when there are to be fewer, but emptied.
func (l *level) configureQueues(response flowcontrolv1.LimitResponse) {
	want := 0
	if q := response.Queuing; response.Type == flowcontrolv1.LimitResponseTypeQueue && q != nil {
		want, l.handSize, l.queueLimit = int(q.Queues), int(q.HandSize), int(q.QueueLengthLimit)
	}
	if len(l.queues) == want {
		return
	}
	kept := slices.DeleteFunc(l.queues, func(q *queue) bool { return len(q.waiting) == 0 })
	for len(kept) < want {
		kept = append(kept, &queue{})
	}
	l.queues = kept
	l.handSize = min(l.handSize, want)
}

func percent(n int, p int32) int { return int(math.Round(float64(n) * float64(p) / 100)) }

// idle is what others may borrow now.
func (l *level) idle() int {
	if l.exempt {
		return l.lendable
	}
	return min(l.lendable, max(0, l.nominal-l.running))
}

// borrowed is what it uses beyond its own.
func (l *level) borrowed() int {
	if l.exempt {
		return 0
	}
	return max(0, l.running-l.nominal)
}

// choose returns the queue for a flow: the shortest of its hand, the running requests counted.
func (l *level) choose(schema, flow string) *queue {
	if len(l.queues) == 0 {
		return &queue{}
	}
	var best *queue
	for _, i := range hand(schema, flow, len(l.queues), max(l.handSize, 1)) {
		if q := l.queues[i]; best == nil || len(q.waiting)+q.running < len(best.waiting)+best.running {
			best = q
		}
	}
	return best
}

// next takes the request out that is to run next. l.waiting is not 0.
func (l *level) next() *waiter {
	var best *queue
	for _, q := range l.queues {
		if len(q.waiting) > 0 && (best == nil || q.work < best.work) {
			best = q
		}
	}
	w := best.waiting[0]
	best.waiting = best.waiting[1:]
	l.waiting--
	l.now = max(l.now, best.work)
	return w
}

// learn adds what a request has taken to the moving average.
func (l *level) learn(took time.Duration) { l.guess += (took - l.guess) / 16 }
