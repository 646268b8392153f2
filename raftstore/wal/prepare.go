package wal

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
)

const (
	zeroChunkBytes = 1 << 20 // written and synced at a time, so that appends get their turn
	keptFreed      = 1       // files without entries that wait to become the next segment but one
)

var zeros [zeroChunkBytes]byte

// preparer makes the next segment ready before it is needed: from a file without entries, or from a new
// one that it fills with zeros. Ready means: under its name, with a first sector of zeros, durable.
type preparer struct {
	dir          Directory
	log          *slog.Logger
	segmentBytes int64

	wake    chan struct{} // one waits at most: there is something to do
	stopped chan struct{} // closed by stop
	done    sync.WaitGroup
	// wanted is the sequence to prepare, 0 for none. It is set with the log's write lock held, as it is
	// reset by take, and read with preparing held: a segment is not prepared again after it was taken.
	wanted atomic.Uint64

	preparing sync.Mutex // guards the fields below, and is held while a segment is prepared
	next      *segment   // or nil
	durable   bool       // next is ready
	freed     []*segment
}

// start starts the goroutine that prepares; stop ends it.
func (p *preparer) start(l *Log) {
	if l.opts.prepareInline {
		return
	}
	p.wake, p.stopped = make(chan struct{}, 1), make(chan struct{})
	p.done.Go(func() {
		for {
			select {
			case <-p.wake:
				p.ahead()
			case <-p.stopped:
				return
			}
		}
	})
}

func (p *preparer) stop() {
	if p.stopped != nil {
		close(p.stopped)
		p.done.Wait()
	}
}

// release closes the files.
func (p *preparer) release() error {
	p.preparing.Lock()
	defer p.preparing.Unlock()
	var errs []error
	if p.next != nil {
		errs = append(errs, p.next.file.Close())
	}
	for _, s := range p.freed {
		errs = append(errs, s.file.Close())
	}
	return errors.Join(errs...)
}

// want asks for a segment, without waiting for it. Without a goroutine take prepares it.
func (p *preparer) want(sequence uint64) {
	p.wanted.Store(sequence)
	p.wakeUp()
}

func (p *preparer) wakeUp() {
	select {
	case p.wake <- struct{}{}: // nil, and never ready, without a goroutine
	default:
	}
}

// ahead prepares a segment before anybody waits for it. If that fails, take tries again and returns the
// error to whom it concerns.
func (p *preparer) ahead() {
	p.preparing.Lock()
	defer p.preparing.Unlock()
	if err := p.prepare(p.wanted.Load()); err != nil && !errors.Is(err, ErrClosed) {
		p.log.Warn("cannot prepare the next segment of the raft log", "err", err)
	}
}

// take returns the segment with that sequence, with room for at least so many bytes.
func (p *preparer) take(sequence uint64, bytes int64) (*segment, error) {
	p.preparing.Lock()
	defer p.preparing.Unlock()
	if err := p.prepare(sequence); err != nil {
		return nil, err
	}
	if err := p.next.grow(bytes); err != nil {
		return nil, err
	}
	s := p.next
	p.next = nil
	p.wanted.Store(0)
	return s, nil
}

// putBack returns a segment that take gave and that was not used. Whatever was written into it is
// overwritten or, after a crash, part of a batch that nobody was told about.
func (p *preparer) putBack(s *segment) {
	p.preparing.Lock()
	defer p.preparing.Unlock()
	p.next, p.durable = s, true
}

// free takes over files without entries. Their removal is the background's work.
func (p *preparer) free(segments []*segment) {
	p.preparing.Lock()
	p.freed = append(p.freed, segments...)
	p.preparing.Unlock()
	if p.wake == nil {
		p.ahead()
	}
	p.wakeUp()
}

// prepare sees to it that there is a next segment, unless sequence is 0, and that only keptFreed files
// wait. preparing is held.
func (p *preparer) prepare(sequence uint64) error {
	if sequence != 0 && p.next == nil {
		if err := p.recycle(sequence); err != nil {
			return err
		}
	}
	if err := p.removeFreed(); err != nil {
		return err
	}
	if sequence != 0 && p.next == nil {
		if err := p.create(sequence); err != nil {
			return err
		}
	}
	if p.next != nil && !p.durable {
		if err := p.dir.Sync(); err != nil {
			return err
		}
		p.durable = true
	}
	return nil
}

// recycle turns a freed file into the next segment, if there is one of the right size.
func (p *preparer) recycle(sequence uint64) error {
	for i, s := range p.freed {
		if s.size != p.segmentBytes {
			continue
		}
		if err := writeAndSync(s.file, zeros[:segmentHeaderBytes], 0); err != nil {
			return err
		}
		if err := p.dir.Rename(s.name(), segmentName(sequence)); err != nil {
			return err
		}
		p.freed = append(p.freed[:i:i], p.freed[i+1:]...)
		p.next = &segment{segmentHeader: segmentHeader{sequence: sequence}, file: s.file, size: s.size}
		p.durable = false
		return nil
	}
	return nil
}

func (p *preparer) removeFreed() error {
	for len(p.freed) > keptFreed {
		s := p.freed[0]
		p.freed = p.freed[1:]
		if err := errors.Join(s.file.Close(), p.dir.Remove(s.name())); err != nil {
			return err
		}
	}
	return nil
}

// create makes a new file and fills it with zeros. It leaves nothing behind if that fails.
func (p *preparer) create(sequence uint64) error {
	f, err := p.dir.Create(segmentName(sequence))
	if err != nil {
		return err
	}
	s := &segment{segmentHeader: segmentHeader{sequence: sequence}, file: f}
	if err := p.fill(s); err != nil {
		return errors.Join(err, f.Close(), p.dir.Remove(s.name()))
	}
	p.next, p.durable = s, false
	return nil
}

func (p *preparer) fill(s *segment) error {
	for s.size < p.segmentBytes {
		select {
		case <-p.stopped: // nil, and never ready, before start
			return ErrClosed
		default:
		}
		if err := s.grow(min(s.size+zeroChunkBytes, p.segmentBytes)); err != nil {
			return err
		}
	}
	return nil
}

// grow appends zeros up to a size, if the file is smaller.
func (s *segment) grow(size int64) error {
	for s.size < size {
		n := min(size-s.size, zeroChunkBytes)
		if err := writeAndSync(s.file, zeros[:n], s.size); err != nil {
			return err
		}
		s.size += n
	}
	return nil
}
