package raftstore

import (
	"context"
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
		s.log.Log(ctx, l, "raft: "+msg, args...)
	}
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
