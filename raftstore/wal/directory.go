package wal

import "io"

// Directory is what the log needs of a file system: the real one (osdirectory.go), or one that fails and
// crashes on demand (memdirectory_test.go, and that of raftstore/simulation).
type Directory interface {
	// Lock makes this process the only user until the Closer is closed. ErrLocked if there is one.
	Lock() (io.Closer, error)
	// List returns the names of all files.
	List() ([]string, error)
	// Open opens a file that exists.
	Open(name string) (File, error)
	// Create makes an empty file that does not exist yet.
	Create(name string) (File, error)
	// Rename gives a file another name, which is free.
	Rename(from, to string) error
	// Remove removes a file.
	Remove(name string) error
	// Sync makes what Create, Rename and Remove did durable.
	Sync() error
}

// File is one open file of a Directory.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Size is in bytes.
	Size() (int64, error)
	// Sync makes what was written durable (fdatasync).
	Sync() error
}
