package ledger

import "errors"

var (
	// ErrLost says that an acknowledged write is not there.
	ErrLost = errors.New("acknowledged writes are lost")
	// ErrWatch says that a watch has told something wrong.
	ErrWatch = errors.New("a watch told something wrong")
	// ErrTaken says that there is an object of that name which another Writer has made, so that nothing can be said about it.
	ErrTaken = errors.New("it is there already, and was written by another")
)
