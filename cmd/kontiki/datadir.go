package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"kontiki/internal/filelock"
)

// dataDir is the directory of a running node, held by one process at a time.
type dataDir struct {
	path string
	lock *os.File
}

// openDataDir creates the directory and takes its lock, which the kernel gives back when the process
// ends, however it ends.
func openDataDir(path string) (*dataDir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	file := filepath.Join(path, "lock")
	lock, err := filelock.Lock(file)
	if errors.Is(err, filelock.ErrHeld) {
		holder, _ := os.ReadFile(file)
		return nil, fmt.Errorf("data directory %s is in use by another kontiki (process %s)", path, strings.TrimSpace(string(holder)))
	}
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := lock.Truncate(0); err != nil {
		return nil, err
	}
	if _, err := lock.WriteAt(fmt.Appendln(nil, os.Getpid()), 0); err != nil {
		return nil, err
	}
	return &dataDir{path: path, lock: lock}, nil
}

func (d *dataDir) join(names ...string) string {
	return filepath.Join(append([]string{d.path}, names...)...)
}

// close gives the lock back.
func (d *dataDir) close() error { return d.lock.Close() }
