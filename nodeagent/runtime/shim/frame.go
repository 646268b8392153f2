package shim

import (
	"encoding/binary"
	"fmt"
	"io"
)

// After an attach request the shim writes frames, and reads raw bytes for stdin until the
// client closes its half of the connection. A frame is
//
//	1 byte stream (1 stdout, 2 stderr) | 4 bytes length, big endian | that many bytes
const frameHeader = 5

// maxFrame is the largest payload, the size of the shim's read buffer.
const maxFrame = 32 << 10

// Stream numbers, as in file descriptors.
const (
	Stdout byte = 1
	Stderr byte = 2
)

// appendFrame appends one frame to b.
func appendFrame(b []byte, stream byte, p []byte) []byte {
	b = append(b, stream)
	b = binary.BigEndian.AppendUint32(b, uint32(len(p)))
	return append(b, p...)
}

// CopyFrames writes the payload of each frame from r to stdout or stderr (either may be
// nil) until r ends, which is no error.
func CopyFrames(r io.Reader, stdout, stderr io.Writer) error {
	var head [frameHeader]byte
	buf := make([]byte, maxFrame)
	for {
		if _, err := io.ReadFull(r, head[:]); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("attach stream: %w", err)
		}
		n := binary.BigEndian.Uint32(head[1:])
		if n > maxFrame {
			return fmt.Errorf("attach stream: frame of %d bytes", n)
		}
		if _, err := io.ReadFull(r, buf[:n]); err != nil {
			return fmt.Errorf("attach stream: %w", err)
		}
		w := stdout
		if head[0] == Stderr {
			w = stderr
		}
		if w == nil {
			continue
		}
		if _, err := w.Write(buf[:n]); err != nil {
			return err
		}
	}
}
