package controlplane

import (
	"context"
	"time"
)

// compactEvery is how often old history is let go.
const compactEvery = time.Minute

// mark says which revision was the newest at a time.
type mark struct {
	at       time.Time
	revision int64
}

// keepHistory compacts the store so that about HistoryRetention of history stays readable. After a
// restart it begins to count anew: history is then kept longer, never shorter.
func (c *ControlPlane) keepHistory(ctx context.Context) {
	var marks []mark // oldest first; at most retention / compactEvery of them
	tick := time.NewTicker(compactEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			revision, err := c.store.Revision(ctx)
			if err != nil {
				continue // no leader just now: the next tick will do
			}
			marks = append(marks, mark{now, int64(revision)})
			var due int64
			if marks, due = expired(marks, now.Add(-c.config.HistoryRetention)); due == 0 {
				continue
			}
			if err := c.store.Compact(ctx, due); err != nil && ctx.Err() == nil {
				c.config.Log.Warn("history could not be compacted", "revision", due, "error", err)
			}
		}
	}
}

// expired takes the marks before limit off the list and returns the last of them; 0 if there is none.
func expired(marks []mark, limit time.Time) (rest []mark, revision int64) {
	for len(marks) > 0 && marks[0].at.Before(limit) {
		revision, marks = marks[0].revision, marks[1:]
	}
	return marks, revision
}
