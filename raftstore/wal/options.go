package wal

import (
	"fmt"
	"log/slog"
	"time"
)

const (
	defaultSegmentBytes = 16 << 20
	minSegmentBytes     = 16 << 10
	maxSegmentBytes     = 1 << 30 // offsets are 32 bits wide
)

// Options of a log. The zero value is good.
type Options struct {
	// SegmentBytes is the size of a segment file: 16 MiB by default, from 16 KiB to 1 GiB. It may
	// differ from one Open to the next. A batch that is larger gets a segment of its own.
	SegmentBytes int64
	// Log gets what an operator should know: a torn write that was cut, a segment that could not be
	// prepared. The default discards.
	Log *slog.Logger

	// OnSync, if set, is told how long each append to a segment took, with its fdatasync, and of how many bytes it was.
	OnSync func(took time.Duration, bytes int)

	// prepareInline prepares segments where they are wanted rather than in the background, so that
	// tests can be repeated.
	prepareInline bool
}

func (o Options) withDefaults() (Options, error) {
	if o.SegmentBytes == 0 {
		o.SegmentBytes = defaultSegmentBytes
	}
	if o.SegmentBytes < minSegmentBytes || o.SegmentBytes > maxSegmentBytes {
		return o, fmt.Errorf("wal: segments of %d bytes: want %d to %d", o.SegmentBytes, minSegmentBytes, maxSegmentBytes)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o, nil
}
