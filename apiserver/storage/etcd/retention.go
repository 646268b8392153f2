package etcd

import (
	"context"
	"log/slog"
	"time"
)

// compactable is what keepHistory needs of a store.
type compactable interface {
	Revision(ctx context.Context) (int64, error)
	Compact(ctx context.Context, revision int64) error
}

// mark says which revision was the newest at a time.
type mark struct {
	at       time.Time
	revision int64
}

// marksPerRetention says how exact the age of history is: one part in so many.
const marksPerRetention = 20

const (
	minMarkInterval = time.Second
	maxMarkInterval = 5 * time.Minute
)

// keepHistory compacts a store so that about as much of its history as keep says stays readable, until ctx
// ends. It begins to count when it starts: after a restart history is kept longer, never shorter. What
// fails is tried again at the next mark.
func keepHistory(ctx context.Context, store compactable, keep time.Duration, log *slog.Logger) {
	var marks []mark // oldest first; about marksPerRetention of them
	tick := time.NewTicker(min(max(keep/marksPerRetention, minMarkInterval), maxMarkInterval))
	defer tick.Stop()
	for {
		revision, err := store.Revision(ctx)
		if err == nil && (len(marks) == 0 || marks[len(marks)-1].revision != revision) {
			marks = append(marks, mark{time.Now(), revision})
		}
		old := 0
		for old < len(marks) && time.Since(marks[old].at) >= keep {
			old++
		}
		if old > 0 {
			err = store.Compact(ctx, marks[old-1].revision)
			if err == nil {
				marks = marks[old:]
			}
		}
		if err != nil && ctx.Err() == nil {
			log.Warn("history could not be compacted, will try again", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
