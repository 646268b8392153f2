package raftstore

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// raftLogger lets hashicorp/raft, which logs through hclog, log through slog.
func raftLogger(log *slog.Logger) hclog.Logger {
	l := hclog.NewInterceptLogger(&hclog.LoggerOptions{Output: io.Discard, Level: hclog.Off})
	l.RegisterSink(slogSink{log})
	return l
}

type slogSink struct {
	log *slog.Logger
}

// Accept implements hclog.SinkAdapter.
func (s slogSink) Accept(_ string, level hclog.Level, msg string, args ...any) {
	ctx := context.Background()
	if l := slogLevel(level); s.log.Enabled(ctx, l) {
		s.log.Log(ctx, l, "raft: "+msg, formatted(args)...)
	}
}

// formatted carries out the formatting that hclog leaves to its sinks.
func formatted(args []any) []any {
	out := make([]any, len(args))
	for i, arg := range args {
		out[i] = arg
		if f, ok := arg.(hclog.Format); ok && len(f) > 0 {
			out[i] = fmt.Sprintf(fmt.Sprint(f[0]), f[1:]...)
		}
	}
	return out
}

func slogLevel(level hclog.Level) slog.Level {
	switch level {
	case hclog.Error:
		return slog.LevelError
	case hclog.Warn:
		return slog.LevelWarn
	case hclog.Info:
		return slog.LevelInfo
	default:
		return slog.LevelDebug
	}
}
