package logs

import (
	"bytes"
	"fmt"
	"time"
)

// Entry is one line of a CRI log file:
//
//	2026-01-02T15:04:05.000000006Z stdout F the text
//
// The third field holds tags separated by ':', the first of which is P for a piece of a longer line (or of one
// that never got a newline) and F for the end of a line.
type Entry struct {
	Time    time.Time
	Stamp   []byte // the time as it is written
	Stream  string // "stdout" or "stderr"
	Partial bool
	Text    []byte // without the newline
}

// Parse reads one line of a log file, given without its newline. The Entry shares the line's memory.
func Parse(line []byte) (Entry, error) {
	stamp, rest, ok := bytes.Cut(line, []byte(" "))
	if !ok {
		return Entry{}, fmt.Errorf("%w: no stream", ErrMalformed)
	}
	t, err := time.Parse(time.RFC3339Nano, string(stamp))
	if err != nil {
		return Entry{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	stream, rest, ok := bytes.Cut(rest, []byte(" "))
	if !ok || string(stream) != "stdout" && string(stream) != "stderr" {
		return Entry{}, fmt.Errorf("%w: stream %q", ErrMalformed, stream)
	}
	tags, text, _ := bytes.Cut(rest, []byte(" "))
	tag, _, _ := bytes.Cut(tags, []byte(":"))
	switch string(tag) {
	case "P", "F":
	default:
		return Entry{}, fmt.Errorf("%w: tag %q", ErrMalformed, tag)
	}
	return Entry{Time: t, Stamp: stamp, Stream: string(stream), Partial: tag[0] == 'P', Text: text}, nil
}
