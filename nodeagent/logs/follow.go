package logs

import (
	"context"
	"os"
	"time"
)

// pollInterval is how soon a follower sees new lines. Polling one file's size costs nothing to speak of and,
// unlike inotify, needs no second path for file systems that have none.
const pollInterval = 100 * time.Millisecond

// follow prints the chain from the offsets of its files on, which it closes. Without Options.Follow it
// ends with the last file.
func follow(ctx context.Context, path string, chain []*os.File, p *printer, flush func()) error {
	defer func() { closeAll(chain) }()
	for {
		for len(chain) > 1 {
			if err := copyLines(chain[0], p); err != nil {
				return err
			}
			chain[0].Close()
			chain = chain[1:]
		}
		alive := p.o.Follow && p.o.Alive != nil && p.o.Alive() // asked before the read that would be the last
		if err := copyLines(chain[0], p); err != nil {
			return err
		}
		next, err := after(path, chain[0])
		if err != nil {
			return err
		}
		if len(next) > 0 {
			// It was rotated. The runtime may have written to it until it opened the next one, so it
			// is read once more by the loop above.
			chain = append(chain, next...)
			continue
		}
		if !alive {
			return nil
		}
		if flush != nil {
			flush()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollInterval):
		}
	}
}
