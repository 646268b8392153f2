package leaderlog

import (
	"slices"

	"github.com/hashicorp/raft"
)

// write is a goroutine: it writes the tail, all that is there at a time.
func (l *Log) write() {
	for {
		select {
		case <-l.wake:
			l.writeTail()
		case <-l.stop:
			l.writeTail()
			return
		}
	}
}

// writeTail writes what is in the tail now. Entries that come meanwhile have roused the writer again.
func (l *Log) writeTail() {
	l.mu.Lock()
	batch := slices.Clip(l.tail)
	failed := l.err != nil
	l.mu.Unlock()
	if len(batch) == 0 || failed {
		return
	}
	err := l.LogStore.StoreLogs(batch)
	if err != nil {
		l.log.Error("the raft log cannot be written; not leading any more", "entries", len(batch), "err", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err = err; err == nil {
		l.tail = slices.Delete(l.tail, 0, len(batch))
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// rouse lets the writer look at the tail.
func (l *Log) rouse() {
	select {
	case l.wake <- struct{}{}:
	default: // it has not looked yet
	}
}

// flush waits until entries of the tail up to an index are on disk, having tried again if that failed before.
func (l *Log) flush(index uint64) error {
	l.mu.Lock()
	waits := len(l.tail) > 0 && l.tail[0].Index <= index
	if waits && l.err != nil {
		l.err = nil
		l.rouse()
	}
	l.mu.Unlock()
	if !waits {
		return nil
	}
	return l.Written(index, nil)
}

// Written waits until the entries up to an index that were given to StoreLogs are on disk. It returns an error if they
// cannot be written, and raft.ErrPipelineShutdown when stop is closed before.
func (l *Log) Written(index uint64, stop <-chan struct{}) error {
	for {
		l.mu.Lock()
		written, err, changed := len(l.tail) == 0 || l.tail[0].Index > index, l.err, l.changed
		l.mu.Unlock()
		if written {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-changed:
		case <-stop:
			return raft.ErrPipelineShutdown
		}
	}
}
