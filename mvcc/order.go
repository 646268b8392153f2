package mvcc

import (
	"bytes"
	"cmp"
	"slices"
)

// within reports whether a version is inside the bounds of a read.
func (r *RangeRequest) within(v version) bool {
	return inside(v.rev.Main, r.MinModRevision, r.MaxModRevision) &&
		inside(v.created, r.MinCreateRevision, r.MaxCreateRevision)
}

func inside(n, low, high int64) bool {
	return (low == 0 || n >= low) && (high == 0 || n <= high)
}

// sort brings versions, which come in key order, into the order that is asked for. The index has all
// that is needed for that; only SortByValue has to wait for the values.
func (r *RangeRequest) sort(versions []version) {
	if r.SortBy == SortByKey {
		if r.Descending {
			slices.Reverse(versions)
		}
		return
	}
	slices.SortStableFunc(versions, func(a, b version) int {
		switch r.SortBy {
		case SortByVersion:
			return r.direct(cmp.Compare(a.number, b.number))
		case SortByCreateRevision:
			return r.direct(cmp.Compare(a.created, b.created))
		default:
			return r.direct(cmp.Compare(a.rev.Main, b.rev.Main))
		}
	})
}

// sortValues is sort for SortByValue. It removes the values afterwards if only keys are wanted.
func (r *RangeRequest) sortValues(kvs []KeyValue) {
	slices.SortStableFunc(kvs, func(a, b KeyValue) int { return r.direct(bytes.Compare(a.Value, b.Value)) })
	if r.KeysOnly {
		for i := range kvs {
			kvs[i].Value = nil
		}
	}
}

func (r *RangeRequest) direct(order int) int {
	if r.Descending {
		return -order
	}
	return order
}

// cut shortens a list to limit, 0 for all, and reports whether it was longer.
func cut[T any](list []T, limit int64) ([]T, bool) {
	if limit <= 0 || int64(len(list)) <= limit {
		return list, false
	}
	return list[:limit], true
}
