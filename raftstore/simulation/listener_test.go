package simulation

import (
	"context"
	"log/slog"
	"os"
)

// listener counts what the members log that shows what a seed has put to the test. With -sim.log it
// also prints all of it, in virtual time.
type listener struct {
	simulation *simulation
	attrs      []slog.Attr
}

// heard are the messages that are counted.
var heard = map[string]string{
	"raft: entering leader state":      "leaders",
	"raft: snapshot complete up to":    "snapshots",
	"raft: Installed remote snapshot":  "installs",
	"raft: pipelining replication":     "pipelines",
	"raft: failed to appendEntries to": "failed appends",
}

// Enabled implements slog.Handler.
func (l *listener) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// Handle implements slog.Handler.
func (l *listener) Handle(ctx context.Context, r slog.Record) error {
	if what := heard[r.Message]; what != "" {
		l.simulation.count(what)
	}
	if !*verbose {
		return nil
	}
	return slog.NewTextHandler(os.Stderr, nil).WithAttrs(l.attrs).Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (l *listener) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &listener{l.simulation, append(l.attrs[:len(l.attrs):len(l.attrs)], attrs...)}
}

// WithGroup implements slog.Handler.
func (l *listener) WithGroup(string) slog.Handler { return l }
