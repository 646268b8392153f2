package raftstore

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// raftLogger lets hashicorp/raft, which logs through hclog, log through slog.
func raftLogger(log *slog.Logger) hclog.Logger { return slogLogger{hclog.NewNullLogger(), log} }

// slogLogger is an hclog.Logger for what raft asks of one. No lock is held while a line is written (hclog's own
// way to other loggers, the InterceptLogger, holds one): who writes it may take its time.
type slogLogger struct {
	hclog.Logger
	log *slog.Logger
}

// Log implements hclog.Logger.
func (s slogLogger) Log(level hclog.Level, msg string, args ...any) {
	ctx := context.Background()
	if l := slogLevel(level); s.log.Enabled(ctx, l) {
		s.log.Log(ctx, l, "raft: "+msg, formatted(args)...)
	}
}

// Trace implements hclog.Logger.
func (s slogLogger) Trace(msg string, args ...any) { s.Log(hclog.Trace, msg, args...) }

// Debug implements hclog.Logger.
func (s slogLogger) Debug(msg string, args ...any) { s.Log(hclog.Debug, msg, args...) }

// Info implements hclog.Logger.
func (s slogLogger) Info(msg string, args ...any) { s.Log(hclog.Info, msg, args...) }

// Warn implements hclog.Logger.
func (s slogLogger) Warn(msg string, args ...any) { s.Log(hclog.Warn, msg, args...) }

// Error implements hclog.Logger.
func (s slogLogger) Error(msg string, args ...any) { s.Log(hclog.Error, msg, args...) }

// With implements hclog.Logger.
func (s slogLogger) With(args ...any) hclog.Logger {
	return slogLogger{s.Logger, s.log.With(formatted(args)...)}
}

// Named implements hclog.Logger.
func (s slogLogger) Named(string) hclog.Logger { return s }

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
