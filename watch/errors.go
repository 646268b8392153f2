package watch

import (
	"errors"
	"fmt"
)

// ErrClosed is returned by everything that needs the feed after it was closed.
var ErrClosed = errors.New("watch: feed is closed")

// ErrExpired is what every *ExpiredError is: the asked revision is no longer in the store.
var ErrExpired = errors.New("watch: revision is no longer available")

// ExpiredError says that changes or states of a revision were asked for that the store has compacted.
// The API answers it with 410 Expired; the client then lists anew.
type ExpiredError struct {
	Requested int64  // the revision that was asked for
	Compacted int64  // what was superseded before it is gone; 0 if not known
	Current   int64  // the newest revision that the feed has seen
	Retention string // Config.Retention
}

// Error names the revisions, the first two as kube-apiserver does, and the rule.
func (e *ExpiredError) Error() string {
	text := fmt.Sprintf("too old resource version: %d (%d)", e.Requested, e.Compacted)
	if e.Current > 0 {
		text += fmt.Sprintf(", the newest is %d", e.Current)
	}
	if e.Retention != "" {
		text += "; " + e.Retention
	}
	return text
}

// Is makes errors.Is(err, ErrExpired) true.
func (e *ExpiredError) Is(target error) bool { return target == ErrExpired }

// CorruptError says that the bytes under a key cannot be decoded.
type CorruptError struct {
	Key      string
	Revision int64
	Err      error
}

// Error names the key and its revision.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("object %s at revision %d cannot be decoded: %v", e.Key, e.Revision, e.Err)
}

// Unwrap returns the decoder's error.
func (e *CorruptError) Unwrap() error { return e.Err }
