package simulation

import (
	"cmp"
	"slices"

	"kontiki/mvcc"
)

// replayed is history done again on the model: the state at each revision, and what was done by whom.
type replayed struct {
	states []state // by revision; the first two are empty
	found  map[*operation]int64
	ended  map[int64]int64 // leases that had keys: the revision in which they went
}

// replay checks that every revision is exactly what one operation does, once, to the revision before;
// and that every answer is what the model answers.
func replay(h *history, final int64, operations []*operation, r *report) *replayed {
	x := &replayed{states: []state{{}, {}}, found: map[*operation]int64{}, ended: map[int64]int64{}}
	byID := map[string]*operation{}
	for _, o := range operations {
		byID[o.id] = o
	}
	for rev := int64(2); rev <= final; rev++ {
		told, known := h.revisions[rev]
		if !known {
			r.add("revision %d of %d was not told by any member", rev, final)
			return x
		}
		x.states = append(x.states, x.step(rev, told, byID, r))
	}
	for _, o := range operations {
		x.checkAnswer(o, r)
	}
	return x
}

func (x *replayed) step(rev int64, told []mvcc.Event, byID map[string]*operation, r *report) state {
	before := x.states[rev-1]
	if author(told) == "" {
		if after, is := x.revocation(rev, told, r); is {
			return after
		}
	}
	o := byID[author(told)]
	switch {
	case o == nil || o.txn == nil:
		r.add("revision %d: nobody did this: %v", rev, showEvent(told[0]))
		return apply(before, told)
	case x.found[o] != 0:
		r.add("revision %d: was done before, at %d: %v", rev, x.found[o], o)
	case o.outcome == refused:
		r.add("revision %d: was refused, and done: %v", rev, o)
	case o.outcome == acknowledged && o.txnRes.Revision != rev:
		r.add("revision %d: was acknowledged with another: %v", rev, o)
	}
	x.found[o] = rev
	after, events, res := before.run(o.txn, rev)
	if err := sameEvents(events, told); err != nil {
		r.add("revision %d: %v does something else: %v", rev, o, err)
		return apply(before, told)
	}
	if o.outcome == acknowledged {
		if err := sameResult(res, o.txnRes); err != nil {
			r.add("revision %d: wrong answer: %v: %v", rev, o, err)
		}
	}
	return after
}

// author is the operation whose id was written.
func author(events []mvcc.Event) string {
	for _, e := range events {
		if e.Type == mvcc.PutEvent {
			return string(e.KV.Value)
		}
	}
	return ""
}

// apply is for events that no operation explains.
func apply(before state, events []mvcc.Event) state {
	after := state{}
	for k, kv := range before {
		after[k] = kv
	}
	for _, e := range events {
		delete(after, string(e.KV.Key))
		if e.Type == mvcc.PutEvent {
			after[string(e.KV.Key)] = e.KV
		}
	}
	return after
}

// checkAnswer checks an operation that wrote nothing, or that should have written something.
func (x *replayed) checkAnswer(o *operation, r *report) {
	if o.outcome != acknowledged || x.found[o] != 0 {
		return
	}
	at := o.revision()
	if o.read != nil && o.read.Revision > 0 {
		at = o.read.Revision
	}
	if at < 1 || at >= int64(len(x.states)) {
		r.add("a revision that there never was: %v", o)
		return
	}
	if o.read != nil {
		if err := sameKVs(x.states[at].read(o.read.Key, o.read.End), o.readRes.KVs); err != nil {
			r.add("wrong answer: %v: %v", o, err)
		}
		return
	}
	_, events, res := x.states[at].run(o.txn, at)
	if err := sameResult(res, o.txnRes); err != nil {
		r.add("wrong answer: %v: %v", o, err)
	} else if len(events) > 0 {
		r.add("was acknowledged, and is not in history: %v", o)
	}
}

// checkOrder checks linearizability by revisions: what an operation saw or did is at least as new as
// all that was seen or done by operations that had returned before it was called, and a write is newer.
// What a process has locally only ever gets newer.
func (x *replayed) checkOrder(operations []*operation, r *report) {
	newest := map[string]*operation{} // by process for local reads, "" for all others
	type moment struct {
		at int64
		o  *operation
	}
	var moments []moment
	for _, o := range operations {
		if x.position(o) == 0 {
			continue
		}
		moments = append(moments, moment{o.call, o})
		if o.outcome == acknowledged {
			moments = append(moments, moment{o.ret, o})
		}
	}
	slices.SortFunc(moments, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	for _, m := range moments {
		group := ""
		if m.o.local {
			group = m.o.process
		}
		before, at := newest[group], x.position(m.o)
		switch {
		case m.at == m.o.ret:
			if before == nil || x.position(before) < at {
				newest[group] = m.o
			}
		case before == nil:
		case x.position(before) > at || x.found[m.o] != 0 && x.position(before) == at:
			r.add("%v\n  is not after\n  %v", m.o, before)
		}
	}
}

// position is the revision that an operation made or saw; 0 if that says nothing about order.
func (x *replayed) position(o *operation) int64 {
	switch {
	case x.found[o] != 0:
		return x.found[o]
	case o.outcome != acknowledged || o.read != nil && o.read.Revision > 0 && !o.local:
		return 0
	}
	return o.revision()
}
