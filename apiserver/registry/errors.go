package registry

import "errors"

// ErrDuplicateRow says that the table already has a row for a resource or kind.
var ErrDuplicateRow = errors.New("resource is already in the table")
