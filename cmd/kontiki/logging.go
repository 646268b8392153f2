package main

import (
	"io"
	"log/slog"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
)

// logOptions is what is logged, and how.
type logOptions struct {
	level, format string
}

func (o *logOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.level, "log-level", "info", "debug, info, warn or error")
	fs.StringVar(&o.format, "log-format", "text", "text or json")
}

func (o *logOptions) complete() error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.level)); err != nil {
		return wrong("log-level", "%q is none of debug, info, warn, error", o.level)
	}
	if o.format != "text" && o.format != "json" {
		return wrong("log-format", "%q is neither text nor json", o.format)
	}
	return nil
}

// logger writes to w. What client-go logs through klog goes the same way, marked as such.
func (o *logOptions) logger(w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(o.level)) // checked by complete
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewTextHandler(w, options)
	if o.format == "json" {
		handler = slog.NewJSONHandler(w, options)
	}
	log := slog.New(handler)
	klog.SetSlogLogger(log.With("component", "client-go"))
	return log
}
