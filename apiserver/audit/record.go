package audit

import (
	"context"
	"maps"
	"sync"
)

// A Record gathers what the audit log will say of one request. It is safe for concurrent use.
type Record struct {
	mu          sync.Mutex // guards what follows; no other lock is taken while it is held
	annotations map[string]string
}

type recordKey struct{}

// WithRecord returns the context of a request that is audited.
func WithRecord(ctx context.Context, record *Record) context.Context {
	return context.WithValue(ctx, recordKey{}, record)
}

// RecordOf returns the record of the request that ctx belongs to; nil if that is not audited.
func RecordOf(ctx context.Context) *Record {
	record, _ := ctx.Value(recordKey{}).(*Record)
	return record
}

// Annotate adds to the record of ctx's request why something was decided. The key names the part that decides, as in
// "authorization.k8s.io/reason"; the value is short and nothing secret. What was said first under a key stands, as in
// Kubernetes. Outside an audited request it does nothing.
func Annotate(ctx context.Context, key, value string) {
	if record := RecordOf(ctx); record != nil {
		record.annotate(key, value)
	}
}

func (r *Record) annotate(key, value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, said := r.annotations[key]; said {
		return
	}
	if r.annotations == nil {
		r.annotations = map[string]string{}
	}
	r.annotations[key] = value
}

// Annotations are what has been said so far.
func (r *Record) Annotations() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.annotations)
}
