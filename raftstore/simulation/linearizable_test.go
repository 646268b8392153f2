package simulation

import (
	"math"
	"time"

	"github.com/anishathalye/porcupine"

	"kontiki/mvcc"
)

// This file has porcupine judge the same operations again, by nothing but keys and values: it knows
// nothing of revisions, and of history only which of the unknown operations happened.
//
// Each register is checked by itself, and the two keys that change together as one. An operation on
// several registers counts once for each of them.

// objects are what is checked one at a time, and their keys.
var objects = [][]string{{"r/0"}, {"r/1"}, {"r/2"}, {"r/3"}, {"r/4"}, {"p/x", "p/y"}}

// content is the values of an object's keys; "" is none.
type content [2]string

// step is what an operation means for an object: what it compared, what it read, then what it wrote.
type step struct {
	equal, unequal []expectation // values that were there, and that were not
	read, write    []expectation
}

type expectation struct {
	slot  int
	value string
}

func (s *step) do(c content) (bool, content) {
	for _, e := range append(s.equal, s.read...) {
		if c[e.slot] != e.value {
			return false, c
		}
	}
	for _, e := range s.unequal {
		if c[e.slot] == e.value {
			return false, c
		}
	}
	for _, e := range s.write {
		c[e.slot] = e.value
	}
	return true, c
}

var objectModel = porcupine.Model{
	Init: func() any { return content{} },
	Step: func(state, input, _ any) (bool, any) { return input.(*step).do(state.(content)) },
}

// checkLinearizable asks porcupine. It gives up, with nothing said, after a time that it never needs.
func (x *replayed) checkLinearizable(operations []*operation, r *report) {
	for _, keys := range objects {
		var steps []porcupine.Operation
		for _, o := range operations {
			if s := x.stepOf(o, keys); s != nil {
				end := int64(math.MaxInt64)
				if o.outcome == acknowledged {
					end = o.ret
				}
				steps = append(steps, porcupine.Operation{Input: s, Call: o.call, Return: end})
			}
		}
		switch porcupine.CheckOperationsTimeout(objectModel, steps, 20*time.Second) {
		case porcupine.Illegal:
			r.add("porcupine: %v is not linearizable (%d operations)", keys, len(steps))
		case porcupine.Unknown:
			r.add("porcupine: %v takes too long (%d operations)", keys, len(steps))
		}
	}
}

// stepOf is what an operation means for an object, nil for nothing.
func (x *replayed) stepOf(o *operation, keys []string) *step {
	s := &step{}
	happened := o.outcome == acknowledged || x.found[o] != 0
	switch {
	case !happened || o.local || o.read != nil && o.read.Revision > 0:
		return nil
	case o.read != nil:
		s.sawRange(keys, o.read, o.readRes.KVs)
	default:
		x.addTxn(s, o, keys)
	}
	if len(s.equal)+len(s.unequal)+len(s.read)+len(s.write) == 0 {
		return nil
	}
	return s
}

func (x *replayed) addTxn(s *step, o *operation, keys []string) {
	succeeded := o.txnRes.Succeeded || o.outcome == unknown // which happened, so it wrote
	for slot, key := range keys {
		for _, c := range o.txn.Compare {
			if string(c.Key) == key && succeeded {
				s.equal = append(s.equal, expectation{slot, x.expected(c)})
			} else if string(c.Key) == key && len(o.txn.Compare) == 1 {
				s.unequal = append(s.unequal, expectation{slot, x.expected(c)})
			}
		}
	}
	ops := o.txn.Then
	if !succeeded {
		ops = o.txn.Else
	}
	for i, op := range ops {
		switch {
		case op.Range != nil && o.outcome == acknowledged && i < len(o.txnRes.Ops) && o.txnRes.Ops[i].Range != nil:
			s.sawRange(keys, op.Range, o.txnRes.Ops[i].Range.KVs)
		case op.Put != nil:
			s.wrote(keys, op.Put.Key, nil, o.id)
		case op.Delete != nil:
			s.wrote(keys, op.Delete.Key, op.Delete.End, "")
		}
	}
}

// expected is the value that a compare asks for: values are unique, so a revision stands for one.
func (x *replayed) expected(c mvcc.Compare) string {
	switch {
	case c.Target == mvcc.CompareValue:
		return string(c.Value)
	case c.Number == 0:
		return ""
	case c.Number < int64(len(x.states)):
		return string(x.states[c.Number][string(c.Key)].Value)
	default:
		return "of a revision that there never was"
	}
}

func (s *step) sawRange(keys []string, req *mvcc.RangeRequest, kvs []mvcc.KeyValue) {
	for slot, key := range keys {
		if !inRange([]byte(key), req.Key, req.End) {
			continue
		}
		e := expectation{slot: slot}
		for _, kv := range kvs {
			if string(kv.Key) == key {
				e.value = string(kv.Value)
			}
		}
		s.read = append(s.read, e)
	}
}

func (s *step) wrote(keys []string, key, end []byte, value string) {
	for slot, k := range keys {
		if inRange([]byte(k), key, end) {
			s.write = append(s.write, expectation{slot, value})
		}
	}
}
