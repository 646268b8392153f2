package simulation

import (
	"context"
	"errors"
	"time"

	"kontiki/mvcc"
)

// watched is one watch: what was asked and all that was delivered.
type watched struct {
	process       string
	req           mvcc.WatchRequest
	before, after int64 // local revisions before and after the watch was made
	batches       []mvcc.WatchBatch
}

// watcher has one watch after the other, on any member; often it goes on where the last one ended.
type watcher struct {
	s    *simulation
	dice *dice
	last *watched
	done []*watched
}

func (w *watcher) run(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(w.dice.upTo(500 * time.Millisecond))
		if p := w.s.cluster.any(w.dice); p != nil {
			w.watch(ctx, p)
		}
	}
}

func (w *watcher) watch(ctx context.Context, p *process) {
	ctx, cancel := context.WithTimeout(ctx, w.dice.between(100*time.Millisecond, 6*time.Second))
	defer cancel()
	defer context.AfterFunc(p.alive, cancel)()
	x := &watched{process: p.String(), req: w.draw(p), before: p.member.LocalRevision()}
	out := p.member.Watch(ctx, x.req)
	x.after = p.member.LocalRevision()
	w.last = x
	w.done = append(w.done, x)
	sluggish := w.dice.happens(0.2)
	for b := range out {
		p.gate.pass()
		if ctx.Err() != nil || !p.isAlive() {
			return
		}
		x.batches = append(x.batches, b)
		if sluggish {
			time.Sleep(w.dice.upTo(2 * time.Second))
		}
	}
}

// draw draws what to watch.
func (w *watcher) draw(p *process) mvcc.WatchRequest {
	if w.last != nil && w.dice.happens(0.5) {
		if next := w.last.next(); next > 0 {
			req := w.last.req
			req.StartRevision = next
			return req
		}
	}
	keys := pick(w.dice, [2]string{"r/0"}, [2]string{"r/", "r0"}, [2]string{"p/", "p0"}, [2]string{"a", "z"}, [2]string{"\x00", "\x00"})
	req := mvcc.WatchRequest{
		Key: []byte(keys[0]), End: []byte(keys[1]), PrevKV: w.dice.happens(0.5), PartialPrevKV: w.dice.happens(0.5),
		Progress: w.dice.happens(0.7), NoPut: w.dice.happens(0.1), NoDelete: w.dice.happens(0.1),
	}
	if w.dice.happens(0.7) {
		req.StartRevision = 1 + int64(w.dice.below(int(p.member.LocalRevision())+3))
	}
	return req
}

// next is the revision from which another watch can go on; 0 if that is not known.
func (x *watched) next() int64 {
	for i := len(x.batches) - 1; i >= 0; i-- {
		if x.batches[i].Err == nil {
			return x.batches[i].Revision + 1
		}
	}
	return x.req.StartRevision
}

// check compares what was delivered with history: everything, once, in order, no revision in two
// batches, and no progress beyond what was delivered.
func (x *watched) check(h *history, replay *replayed, r *report) {
	at := x.req.StartRevision - 1
	if x.req.StartRevision <= 0 {
		at = x.before
		if len(x.batches) > 0 && x.batches[0].Err == nil {
			at = x.actualStart(x.batches[0])
		}
	}
	for i, b := range x.batches {
		if b.Err != nil {
			x.checkEnd(at, b, h, r)
			if i != len(x.batches)-1 {
				r.add("watch on %s from %d: goes on after %v", x.process, x.req.StartRevision, b.Err)
			}
			return
		}
		want := x.expected(h, at+1, b.Revision)
		if err := sameEvents(want, b.Events); err != nil {
			r.add("watch on %s of %s-%s from %d: batch from %d to %d: %v", x.process, x.req.Key, x.req.End, x.req.StartRevision, at+1, b.Revision, err)
			return
		}
		x.checkPrevious(b, h, replay, r)
		if b.Revision < at || len(b.Events) > 0 && b.Revision == at {
			r.add("watch on %s from %d: revision %d comes after %d", x.process, x.req.StartRevision, b.Revision, at)
		}
		at = b.Revision
	}
}

// actualStart finds where a watch from "the next revision" began: somewhere between the two looks.
func (x *watched) actualStart(first mvcc.WatchBatch) int64 {
	if len(first.Events) > 0 {
		return min(x.after, first.Events[0].KV.ModRevision-1)
	}
	return min(x.after, first.Revision)
}

func (x *watched) expected(h *history, from, to int64) (events []mvcc.Event) {
	for rev := from; rev <= to; rev++ {
		for _, e := range h.revisions[rev] {
			wanted := inRange(e.KV.Key, x.req.Key, x.req.End)
			if wanted && !(e.Type == mvcc.PutEvent && x.req.NoPut) && !(e.Type == mvcc.DeleteEvent && x.req.NoDelete) {
				events = append(events, e)
			}
		}
	}
	return events
}

func (x *watched) checkPrevious(b mvcc.WatchBatch, h *history, replay *replayed, r *report) {
	for _, e := range b.Events {
		var want []mvcc.KeyValue
		rev := e.KV.ModRevision
		if rev > int64(len(replay.states)) {
			return
		}
		if old, existed := replay.states[rev-1][string(e.KV.Key)]; existed && x.req.PrevKV {
			want = append(want, old)
		}
		if e.PrevKV == nil && x.req.PartialPrevKV && rev <= h.compacted {
			continue
		}
		if err := sameKVs(want, optional(e.PrevKV)); err != nil {
			r.add("watch on %s: version before %s: %v", x.process, showEvent(e), err)
		}
	}
}

// checkEnd judges the reason why a watch ended.
func (x *watched) checkEnd(at int64, b mvcc.WatchBatch, h *history, r *report) {
	switch {
	case errors.Is(b.Err, mvcc.ErrClosed):
	case errors.Is(b.Err, mvcc.ErrCompacted):
		if b.CompactRevision > h.compacted || b.CompactRevision < at+1 {
			r.add("watch on %s from %d: said to be compacted at %d, was at %d; highest compaction was %d", x.process, x.req.StartRevision, b.CompactRevision, at, h.compacted)
		}
	default:
		r.add("watch on %s from %d: %v", x.process, x.req.StartRevision, b.Err)
	}
}

// tell keeps history up to date with what a member's processes deliver, each going on where the one before ended.
func (s *simulation) tell(ctx context.Context, name string) {
	next := int64(2)
	for ctx.Err() == nil {
		p := s.cluster.process(name)
		if p == nil {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		watch, cancel := context.WithCancel(ctx)
		stop := context.AfterFunc(p.alive, cancel)
		for b := range p.member.Watch(watch, mvcc.WatchRequest{Key: []byte{0}, End: []byte{0}, StartRevision: next, Progress: true}) {
			if !p.isAlive() {
				break
			}
			if errors.Is(b.Err, mvcc.ErrCompacted) {
				next = b.CompactRevision // others have told what is missing
			}
			if b.Err == nil {
				s.history.tell(p, b)
				next = max(next, b.Revision+1)
			}
		}
		stop()
		cancel()
		time.Sleep(time.Millisecond)
	}
}
