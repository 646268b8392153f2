package wal

import "io"

// directory is what the log needs of a file system: the real one (osdirectory.go), or one that fails and
// crashes on demand (memdirectory_test.go).
type directory interface {
	// lock makes this process the only user until the Closer is closed. ErrLocked if there is one.
	lock() (io.Closer, error)
	// list returns the names of all files.
	list() ([]string, error)
	// open opens a file that exists.
	open(name string) (file, error)
	// create makes an empty file that does not exist yet.
	create(name string) (file, error)
	// rename gives a file another name, which is free.
	rename(from, to string) error
	remove(name string) error
	// sync makes what create, rename and remove did durable.
	sync() error
}

// file is one open file of a directory.
type file interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// size is in bytes.
	size() (int64, error)
	// sync makes what was written durable (fdatasync).
	sync() error
}
