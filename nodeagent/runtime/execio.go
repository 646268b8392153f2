package runtime

import (
	"io"
	"os"
	"sync/atomic"
	"time"
)

// output copies one stream of an execution to its reader.
//
// The stream can stay open after the process has ended, when a process that it left in the
// background holds it. Then it may be silent for linger at most. A reader that is slow
// loses nothing: only waiting for more output is limited, not handing it over.
type output struct {
	from   *os.File
	to     io.Writer
	exited atomic.Bool
	done   chan struct{}
}

const linger = 2 * time.Second

// startOutput begins to copy; the goroutine ends with the stream, or after finish.
func startOutput(from *os.File, to io.Writer) *output {
	o := &output{from: from, to: to, done: make(chan struct{})}
	go o.copy()
	return o
}

func (o *output) copy() {
	defer close(o.done)
	defer o.from.Close() // if the reader is gone the process shall get SIGPIPE
	buf := make([]byte, 32<<10)
	for {
		if o.exited.Load() {
			_ = o.from.SetReadDeadline(time.Now().Add(linger))
		}
		n, err := o.from.Read(buf)
		if n > 0 {
			if _, werr := o.to.Write(buf[:n]); werr != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// finish tells that the process has ended and waits until its output has been handed over.
func (o *output) finish() {
	o.exited.Store(true)
	_ = o.from.SetReadDeadline(time.Now().Add(linger))
	<-o.done
}
