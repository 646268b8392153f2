package ledger

import "errors"

var (
	// ErrLost says that an acknowledged write is not there.
	ErrLost = errors.New("acknowledged writes are lost")
	// ErrWatch says that a watch has told something wrong.
	ErrWatch = errors.New("a watch told something wrong")
)
