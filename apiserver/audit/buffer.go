package audit

import (
	"errors"
	"sync"
	"time"
)

// BatchConfig of ModeBatch. Zero values mean the defaults.
type BatchConfig struct {
	BufferSize int           // events that may wait: 10000
	MaxSize    int           // events that are written at a time: 400
	MaxWait    time.Duration // how long an event waits for others: 30 s for a webhook, not at all for a file
}

const (
	defaultBufferSize = 10_000
	defaultBatchSize  = 400
)

// maxBufferBytes bounds the bytes of the events that wait: with bodies, ten thousand could be gigabytes.
const maxBufferBytes = 64 << 20

// drainTime is how long close waits for a sink to take what is buffered.
const drainTime = 5 * time.Second

// buffer is a sink that nobody waits for, before another one. When it is full an event is refused with ErrFull.
type buffer struct {
	config BatchConfig
	sink   sink
	lost   func(events int, err error) // called for a batch that sink did not take
	full   chan struct{}               // a batch is complete; capacity 1
	done   chan struct{}               // the writer has ended

	mu      sync.Mutex // guards what follows; no other lock is taken while it is held
	waiting [][]byte
	bytes   int
	closed  bool
}

func newBuffer(s sink, config BatchConfig, lost func(int, error)) *buffer {
	if config.BufferSize == 0 {
		config.BufferSize = defaultBufferSize
	}
	if config.MaxSize == 0 {
		config.MaxSize = defaultBatchSize
	}
	b := &buffer{config: config, sink: s, lost: lost, full: make(chan struct{}, 1), done: make(chan struct{})}
	go b.run()
	return b
}

// write implements sink.
func (b *buffer) write(events [][]byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	size := 0
	for _, event := range events {
		size += len(event)
	}
	if b.closed || len(b.waiting)+len(events) > b.config.BufferSize || b.bytes+size > maxBufferBytes {
		return ErrFull
	}
	b.waiting, b.bytes = append(b.waiting, events...), b.bytes+size
	if len(b.waiting) >= b.config.MaxSize || b.config.MaxWait == 0 {
		b.signal()
	}
	return nil
}

func (b *buffer) signal() {
	select {
	case b.full <- struct{}{}:
	default: // somebody has
	}
}

// run writes batches until the buffer is closed and empty.
func (b *buffer) run() {
	defer close(b.done)
	var tick <-chan time.Time
	if b.config.MaxWait > 0 {
		ticker := time.NewTicker(b.config.MaxWait)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case <-b.full:
		case <-tick:
		}
		for {
			batch, last := b.take()
			if len(batch) > 0 {
				if err := b.sink.write(batch); err != nil {
					b.lost(len(batch), err)
				}
			}
			if last {
				return
			}
			if len(batch) < b.config.MaxSize {
				break
			}
		}
	}
}

// take takes a batch; last says that there will be no other.
func (b *buffer) take() (batch [][]byte, last bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.waiting), b.config.MaxSize)
	batch, b.waiting = b.waiting[:n:n], b.waiting[n:]
	for _, event := range batch {
		b.bytes -= len(event)
	}
	return batch, b.closed && len(b.waiting) == 0
}

// close implements sink: it has the sink take what waits, as long as that does not take longer than drainTime.
func (b *buffer) close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.signal()
	patience := time.NewTimer(drainTime)
	defer patience.Stop()
	var late error
	select {
	case <-b.done:
	case <-patience.C:
		late = errors.New("the audit buffer could not be emptied in time")
	}
	err := b.sink.close() // lets a write fail that is still under way
	<-b.done
	return errors.Join(late, err)
}
