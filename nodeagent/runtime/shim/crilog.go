package shim

import (
	"bytes"
	"os"
	"sync"
	"time"
)

// criLog writes a container's output in the CRI log format (kubernetes/design-proposals,
// kubelet-cri-logging), one entry per line:
//
//	2016-10-06T00:17:09.669794202Z stdout F a whole line
//	2016-10-06T00:17:09.669794203Z stdout P a piece of a line
//
// A piece without a newline is written at once as P, so that a prompt or a progress bar
// can be read; readers join P entries with the F entry that ends them.
type criLog struct {
	mu   sync.Mutex // guards file and buf; taken alone
	path string     // empty: no log is wanted
	file *os.File
	buf  []byte
}

// maxEntry is the longest text of one entry: longer lines become P entries, as the
// kubelet's reader expects.
const maxEntry = 16 << 10

// openLog opens the log for appending: a container that is started again with the same
// path continues it.
func openLog(path string) (*criLog, error) {
	l := &criLog{path: path}
	return l, l.reopen()
}

// reopen opens the path anew and closes the old file, after a rotation renamed it. Entries
// go whole into one of the two.
func (l *criLog) reopen() error {
	if l.path == "" {
		return nil
	}
	f, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		l.file.Close()
	}
	l.file = f
	return nil
}

// write logs p, which came from the stream at now. A full disk loses log lines, never the
// container: errors are dropped.
func (l *criLog) write(stream string, now time.Time, p []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return
	}
	l.buf = appendEntries(l.buf[:0], stream, now, p)
	_, _ = l.file.Write(l.buf)
}

// appendEntries appends the log entries of p to b.
func appendEntries(b []byte, stream string, now time.Time, p []byte) []byte {
	for len(p) > 0 {
		text, tag := p, "P"
		if i := bytes.IndexByte(p, '\n'); i >= 0 {
			text, tag = p[:i], "F"
		}
		if len(text) > maxEntry {
			text, tag = text[:maxEntry], "P"
		}
		b = now.UTC().AppendFormat(b, "2006-01-02T15:04:05.000000000Z07:00")
		b = append(b, ' ')
		b = append(b, stream...)
		b = append(b, ' ')
		b = append(b, tag...)
		b = append(b, ' ')
		b = append(b, text...)
		b = append(b, '\n')
		p = p[len(text):]
		if tag == "F" {
			p = p[1:] // its newline
		}
	}
	return b
}
