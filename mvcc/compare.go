package mvcc

import (
	"bytes"
	"cmp"
)

// holds evaluates a compare against the state before the transaction.
//
// A key that does not exist compares as if all its numbers were 0; its value compares as nothing at
// all: no relation holds, not even NotEqual. A range without keys is like a key that does not exist.
func (t *writeTxn) holds(c Compare) bool {
	if (keyRange{c.Key, c.End}).single() { // most compares
		if k := t.s.index.get(c.Key); k != nil {
			if v, ok := k.current(); ok {
				return t.relation(c, k, v)
			}
		}
		return c.ofNothing()
	}
	found, all := false, true
	t.s.index.scan(keyRange{c.Key, c.End}, t.main, func(k *keyIndex, v version) bool {
		found = true
		all = t.relation(c, k, v)
		return all
	})
	if !found {
		return c.ofNothing()
	}
	return all
}

// ofNothing says whether the compare holds for a key that does not exist.
func (c *Compare) ofNothing() bool {
	return c.Target != CompareValue && c.Result.of(cmp.Compare(0, c.Number))
}

// relation compares one existing key. All compares but that of values need only the index.
func (t *writeTxn) relation(c Compare, k *keyIndex, v version) bool {
	switch c.Target {
	case CompareVersion:
		return c.Result.of(cmp.Compare(v.number, c.Number))
	case CompareCreateRevision:
		return c.Result.of(cmp.Compare(v.created, c.Number))
	case CompareModRevision:
		return c.Result.of(cmp.Compare(v.rev.Main, c.Number))
	case CompareLease:
		return c.Result.of(cmp.Compare(k.lease, c.Number))
	}
	kv := must(t.view().keyValue(v.rev, false))
	return c.Result.of(bytes.Compare(kv.Value, c.Value))
}

// of says whether the relation holds, given how the attribute stands to the operand (-1, 0, +1).
func (r CompareResult) of(order int) bool {
	switch r {
	case Equal:
		return order == 0
	case Greater:
		return order > 0
	case Less:
		return order < 0
	default:
		return order != 0
	}
}
