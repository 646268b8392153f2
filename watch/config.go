package watch

import (
	"log/slog"
	"time"
)

// Config says how a Feed and its caches behave. The zero value is usable.
type Config struct {
	Log *slog.Logger // nil discards

	// Retention says in words how long the source keeps history; it is part of every *ExpiredError.
	Retention string

	// BookmarkPeriod is how often a watcher that asked for bookmarks gets one; 0 means a minute, as
	// in Kubernetes.
	BookmarkPeriod time.Duration
	// SweepPeriod is how often decoded objects and encodings that nobody used since the last sweep
	// are dropped; 0 means a minute.
	SweepPeriod time.Duration
	// RetryPeriod is the pause before the feed turns to a failed source again; 0 means 200 ms.
	RetryPeriod time.Duration
	// KeepChanges is how many recent changes a cache keeps for watchers to start from; 0 means 1,024.
	KeepChanges int
	// MaxChanges is how many it keeps while a slow watcher still needs them; 0 means 16 times KeepChanges.
	MaxChanges int
}

func (c Config) withDefaults() Config {
	orDuration(&c.BookmarkPeriod, time.Minute)
	orDuration(&c.SweepPeriod, time.Minute)
	orDuration(&c.RetryPeriod, 200*time.Millisecond)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.KeepChanges == 0 {
		c.KeepChanges = 1024
	}
	if c.MaxChanges == 0 {
		c.MaxChanges = 16 * c.KeepChanges
	}
	return c
}

func orDuration(d *time.Duration, otherwise time.Duration) {
	if *d == 0 {
		*d = otherwise
	}
}
