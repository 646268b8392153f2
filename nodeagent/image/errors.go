package image

import "errors"

var (
	// ErrNotFound: no image of that name, digest or id is in the store.
	ErrNotFound = errors.New("image not found")
	// ErrBadReference: the text is no image name, digest or id.
	ErrBadReference = errors.New("invalid image reference")
	// ErrBadArchive: the file or layer is not what it claims to be.
	ErrBadArchive = errors.New("bad image archive")
	// ErrUnsafePath: a layer names a path outside of itself.
	ErrUnsafePath = errors.New("unsafe path in layer")
	// ErrTooLarge: a layer exceeds the limits of Limits.
	ErrTooLarge = errors.New("layer too large")
)
