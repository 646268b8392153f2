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
	gate       *gate
	attrs      []slog.Attr
}

// of is the listener to one process, which waits here while it stands still.
func (l *listener) of(p *process) *listener {
	return &listener{l.simulation, p.gate, []slog.Attr{slog.String("member", p.String())}}
}

// heard are the messages that are counted.
var heard = map[string]string{
	"raft: entering leader state":                 "leaders",
	"raft: snapshot complete up to":               "snapshots",
	"raft: Installed remote snapshot":             "installs",
	"raft: pipelining replication":                "pipelines",
	"raft: failed to appendEntries to":            "failed appends",
	"cut a torn write at the end of the raft log": "torn writes",
}

// Enabled implements slog.Handler.
func (l *listener) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// Handle implements slog.Handler.
func (l *listener) Handle(ctx context.Context, r slog.Record) error {
	l.gate.pass()
	if what := heard[r.Message]; what != "" {
		l.simulation.count(what)
		if what == "leaders" {
			l.simulation.noteLeader()
		}
	}
	if !*verbose {
		return nil
	}
	return slog.NewTextHandler(os.Stderr, nil).WithAttrs(l.attrs).Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (l *listener) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &listener{l.simulation, l.gate, append(l.attrs[:len(l.attrs):len(l.attrs)], attrs...)}
}

// WithGroup implements slog.Handler.
func (l *listener) WithGroup(string) slog.Handler { return l }
