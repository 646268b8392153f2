package grpcserver

import "sync"

// outBuffer has the frames that are to be written. A connection without any has no buffer.
type outBuffer struct{ b *[]byte }

var outBuffers = sync.Pool{New: func() any { b := make([]byte, 0, maxFrameBytes); return &b }}

func freeOut(b *[]byte) {
	*b = (*b)[:0]
	outBuffers.Put(b)
}

// Write implements io.Writer, for frames.
func (o *outBuffer) Write(p []byte) (int, error) {
	o.set(append(o.start(), p...))
	return len(p), nil
}

// start returns what there is, to be appended to, and set gives it back.
func (o *outBuffer) start() []byte {
	if o.b == nil {
		o.b = outBuffers.Get().(*[]byte)
	}
	return *o.b
}

func (o *outBuffer) set(b []byte) { *o.b = b }

func (o *outBuffer) size() int {
	if o.b == nil {
		return 0
	}
	return len(*o.b)
}

// take takes all there is, nil if there is nothing.
func (o *outBuffer) take() *[]byte {
	b := o.b
	o.b = nil
	return b
}
