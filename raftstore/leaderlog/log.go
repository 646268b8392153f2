package leaderlog

import (
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// maxTail is how many entries wait to be written at most.
const maxTail = 64

// Log is the log store to give to raft instead of the one that it wraps. See the package's documentation.
type Log struct {
	raft.LogStore
	log   *slog.Logger
	of    atomic.Pointer[standing]
	wake  chan struct{} // room for one: the tail has grown, or is to be tried again
	stop  chan struct{}
	group sync.WaitGroup

	mu      sync.Mutex // guards everything below; nothing else is locked while it is held
	tail    []*raft.Log
	err     error         // why the tail could not be written; nil while nothing is known against it
	changed chan struct{} // closed when the tail has become shorter, or err is set
}

var _ raft.MonotonicLogStore = (*Log)(nil)

// New wraps a log store. Until Of is called, everything is written at once.
func New(store raft.LogStore, log *slog.Logger) *Log {
	l := &Log{LogStore: store, log: log, wake: make(chan struct{}, 1), stop: make(chan struct{}), changed: make(chan struct{})}
	l.group.Go(l.write)
	return l
}

// standing is where a member stands in the cluster, which raft knows.
type standing interface {
	State() raft.RaftState
	GetConfiguration() raft.ConfigurationFuture
}

// Of says whose log it is.
func (l *Log) Of(r *raft.Raft) { l.belongTo(r) }

func (l *Log) belongTo(s standing) { l.of.Store(&s) }

// Close writes what is left. Raft must have been shut down.
func (l *Log) Close() {
	close(l.stop)
	l.group.Wait()
}

// IsMonotonic implements raft.MonotonicLogStore, as the store itself does.
func (l *Log) IsMonotonic() bool {
	m, ok := l.LogStore.(raft.MonotonicLogStore)
	return ok && m.IsMonotonic()
}

// StoreLog implements raft.LogStore.
func (l *Log) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

// StoreLogs implements raft.LogStore. Raft calls it on its main loop.
func (l *Log) StoreLogs(entries []*raft.Log) error {
	if l.mayDefer(entries) && l.deferred(entries) {
		return nil
	}
	if err := l.flush(^uint64(0)); err != nil {
		return err
	}
	return l.LogStore.StoreLogs(entries)
}

// mayDefer says that nothing depends on these entries before a follower's answer does.
func (l *Log) mayDefer(entries []*raft.Log) bool {
	notCommand := func(e *raft.Log) bool { return e.Type != raft.LogCommand }
	return l.leads() && !slices.ContainsFunc(entries, notCommand) && !l.onlyVoter()
}

// deferred puts entries into the tail; false if it is full, or cannot be written.
func (l *Log) deferred(entries []*raft.Log) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil || len(l.tail)+len(entries) > maxTail {
		return false
	}
	l.tail = append(l.tail, entries...)
	l.rouse()
	return true
}

// leads is exact on raft's main loop, which is what changes it.
func (l *Log) leads() bool {
	s := l.of.Load()
	return s != nil && (*s).State() == raft.Leader
}

// onlyVoter says that there are no followers whose answers count.
func (l *Log) onlyVoter() bool {
	voters := 0
	for _, s := range (*l.of.Load()).GetConfiguration().Configuration().Servers {
		if s.Suffrage == raft.Voter {
			voters++
		}
	}
	return voters < 2
}

// FirstIndex implements raft.LogStore.
func (l *Log) FirstIndex() (uint64, error) {
	first, err := l.LogStore.FirstIndex()
	if first > 0 || err != nil {
		return first, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.tail) > 0 {
		first = l.tail[0].Index
	}
	return first, nil
}

// LastIndex implements raft.LogStore.
func (l *Log) LastIndex() (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.tail); n > 0 {
		return l.tail[n-1].Index, nil
	}
	return l.LogStore.LastIndex()
}

// GetLog implements raft.LogStore. What a member that does not lead is told of is durable.
func (l *Log) GetLog(index uint64, out *raft.Log) error {
	if entry := l.inTail(index); entry != nil {
		if l.leads() {
			*out = *entry
			return nil
		}
		if err := l.flush(index); err != nil {
			return err
		}
	}
	return l.LogStore.GetLog(index, out)
}

func (l *Log) inTail(index uint64) *raft.Log {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.tail) == 0 || index < l.tail[0].Index || index > l.tail[len(l.tail)-1].Index {
		return nil
	}
	return l.tail[index-l.tail[0].Index]
}

// DeleteRange implements raft.LogStore.
func (l *Log) DeleteRange(first, last uint64) error {
	if err := l.flush(last); err != nil {
		return err
	}
	return l.LogStore.DeleteRange(first, last)
}
