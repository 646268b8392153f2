package apiserver

import (
	"context"
	"log/slog"
)

// requestLog is a log handler that adds to what is logged in the course of a request the request's id: the one that the answer, the
// audit log and the raft log have.
type requestLog struct{ slog.Handler }

// Handle implements slog.Handler.
func (h requestLog) Handle(ctx context.Context, record slog.Record) error {
	if id := factsOf(ctx).id; id != "" {
		record = record.Clone()
		record.AddAttrs(slog.String("auditID", id))
	}
	return h.Handler.Handle(ctx, record)
}

// WithAttrs implements slog.Handler.
func (h requestLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return requestLog{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h requestLog) WithGroup(name string) slog.Handler {
	return requestLog{h.Handler.WithGroup(name)}
}
