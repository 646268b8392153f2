package storage

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"kontiki/watch"
)

// Objects whose version a webhook converts are decoded many at a time where many are read: one request to the webhook
// for a page of a list, as in Kubernetes, in place of one for each object.
const (
	togetherObjects = 500     // a page of kubectl's
	togetherBytes   = 2 << 20 // as stored; the answer of a webhook may be four times as large
)

// decodeTogether decodes objects of a snapshot with keys in [start, end) that are not decoded yet, at most so many (0: as many as there are).
func (c codec) decodeTogether(snapshot *watch.Snapshot, start, end string, limit int64) error {
	if c.row.FromHubAll == nil {
		return nil
	}
	var failure error
	var batch []*watch.Object
	size, seen := 0, int64(0)
	flush := func() bool {
		failure = c.decodeBatch(batch)
		batch, size = batch[:0], 0
		return failure == nil
	}
	snapshot.Ascend(start, end, func(o *watch.Object) bool {
		if limit > 0 && seen == limit {
			return false
		}
		seen++
		if o.Decoded() {
			return true
		}
		batch, size = append(batch, o), size+len(o.Value())
		return len(batch) < togetherObjects && size < togetherBytes || flush()
	})
	if failure == nil && len(batch) > 0 {
		flush()
	}
	return failure
}

// decodeBatch decodes objects with one conversion. The error is that of the first, as if it had been converted alone.
func (c codec) decodeBatch(batch []*watch.Object) error {
	stored := make([]runtime.Object, 0, len(batch))
	for _, o := range batch {
		plain, _, err := c.atRest.Open(o.Key, o.Value())
		if err != nil {
			return corrupt(o, err)
		}
		obj, err := c.decodeHub(plain)
		if err != nil {
			return corrupt(o, err)
		}
		stored = append(stored, obj)
	}
	converted, err := c.row.FromHubAll(stored)
	if err != nil {
		return corrupt(batch[0], fmt.Errorf("convert from %s: %w", c.hub.GroupVersionKind(), err))
	}
	for i, o := range batch {
		obj, err := c.finish(converted[i], o.Revision)
		if err != nil {
			return corrupt(o, err)
		}
		o.Adopt(obj)
	}
	return nil
}

func corrupt(o *watch.Object, err error) error {
	return &watch.CorruptError{Key: o.Key, Revision: o.Revision, Err: err}
}
