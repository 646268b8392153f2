package lingering

import (
	"io"
	"net"
	"sync"
)

// Join copies both ways until one side has ended, then closes both. What it said before is written by then. That a side takes
// nothing more is not yet its end: what it has said last may still be on its way, and is read; what the other one sends
// is dropped meanwhile.
func Join(a, b net.Conn) {
	var wg sync.WaitGroup
	shut := func() { a.Close(); b.Close() }
	wg.Go(func() { defer shut(); pass(a, b) })
	wg.Go(func() { defer shut(); pass(b, a) })
	wg.Wait()
}

// pass copies until from has ended.
func pass(to io.Writer, from io.Reader) {
	out := &writer{Writer: to}
	if _, _ = io.Copy(out, from); out.failed {
		_, _ = io.Copy(io.Discard, from)
	}
}

// writer remembers that a Write has failed: io.Copy does not say of which side its error is.
type writer struct {
	io.Writer
	failed bool
}

// Write implements io.Writer.
func (w *writer) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	if err != nil {
		w.failed = true
	}
	return n, err
}
