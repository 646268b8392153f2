package logs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"time"
)

// Options of a log read; the zero value reads everything that is there.
type Options struct {
	TailLines  *int64    // only the last so many lines
	Since      time.Time // only lines not older
	Timestamps bool      // each line begins with its time
	LimitBytes *int64    // stop after so many bytes of output
	Stream     string    // "stdout" or "stderr"; empty is both
	Follow     bool
	// Alive says whether the container may still write; nil is never. A follower ends when it is
	// false and all is read.
	Alive func() bool
}

// errLimit ends a read at Options.LimitBytes.
var errLimit = errors.New("limit reached")

// Read writes the log at path, rotated files included, to w. flush, if not nil, is called when a
// follower has caught up. Torn and malformed lines are skipped.
func Read(ctx context.Context, path string, o Options, w io.Writer, flush func()) error {
	chain, err := openChain(path)
	if err != nil {
		return err
	}
	if o.TailLines != nil {
		if chain, err = seekTail(chain, *o.TailLines); err != nil {
			closeAll(chain)
			return err
		}
	}
	p := &printer{w: w, o: o, lineStart: true}
	err = follow(ctx, path, chain, p, flush)
	if errors.Is(err, errLimit) {
		return nil
	}
	return err
}

// copyLines prints the complete lines of f from its offset on, and leaves the offset behind the last
// of them.
func copyLines(f *os.File, p *printer) error {
	start, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	r := bufio.NewReaderSize(f, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			_, err = f.Seek(start, io.SeekStart)
			return err
		}
		if err != nil {
			return err
		}
		start += int64(len(line))
		if err := p.print(bytes.TrimSuffix(line, []byte("\n"))); err != nil {
			return err
		}
	}
}

// printer writes entries as a client sees them: pieces of a line joined, one time per line.
type printer struct {
	w         io.Writer
	o         Options
	lineStart bool
	written   int64
	buf       []byte
}

func (p *printer) print(line []byte) error {
	e, err := Parse(line)
	if err != nil || e.Time.Before(p.o.Since) || p.o.Stream != "" && p.o.Stream != e.Stream {
		return nil
	}
	p.buf = p.buf[:0]
	if p.lineStart && p.o.Timestamps {
		p.buf = append(append(p.buf, e.Stamp...), ' ')
	}
	p.buf = append(p.buf, e.Text...)
	if !e.Partial {
		p.buf = append(p.buf, '\n')
	}
	p.lineStart = !e.Partial
	if p.o.LimitBytes != nil && p.written+int64(len(p.buf)) >= *p.o.LimitBytes {
		p.buf = p.buf[:*p.o.LimitBytes-p.written]
		if _, err := p.w.Write(p.buf); err != nil {
			return err
		}
		return errLimit
	}
	n, err := p.w.Write(p.buf)
	p.written += int64(n)
	return err
}
