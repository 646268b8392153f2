package wal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"kontiki/internal/filelock"
)

const lockName = "lock"

// osDirectory is a directory of the operating system.
type osDirectory string

// openOSDirectory makes the directory if there is none, durably.
func openOSDirectory(path string) (osDirectory, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return "", fmt.Errorf("wal: %w", err)
	}
	return osDirectory(path), osDirectory(filepath.Dir(path)).Sync()
}

func (d osDirectory) path(name string) string { return filepath.Join(string(d), name) }

func (d osDirectory) Lock() (io.Closer, error) {
	f, err := filelock.Lock(d.path(lockName))
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("%w: %s", ErrLocked, d)
	}
	if err != nil {
		return nil, err
	}
	return f, nil // closing it unlocks
}

func (d osDirectory) List() ([]string, error) {
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

func (d osDirectory) Open(name string) (File, error) {
	return asFile(os.OpenFile(d.path(name), os.O_RDWR, 0))
}

func (d osDirectory) Create(name string) (File, error) {
	return asFile(os.OpenFile(d.path(name), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600))
}

func (d osDirectory) Rename(from, to string) error { return os.Rename(d.path(from), d.path(to)) }

func (d osDirectory) Remove(name string) error { return os.Remove(d.path(name)) }

func (d osDirectory) Sync() error {
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

type osFile struct{ *os.File }

func asFile(f *os.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// sync leaves out what fsync would do for the modification time. A changed size is synced.
func (f osFile) Sync() error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
