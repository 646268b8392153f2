// Package filelock holds a directory for one process at a time, by a flock(2) on a file in it.
package filelock

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrHeld: another process holds the lock.
var ErrHeld = errors.New("held by another process")

// Patience is how long Lock waits for a lock that is held. The kernel drops the lock of a process that ends, but
// a child that was being started at that moment shares it until its exec: whoever is restarted right after
// kill -9 has to wait that long.
const Patience = 2 * time.Second

const retryEvery = 10 * time.Millisecond

// Lock creates the file if need be and locks it. The kernel unlocks it when the file is closed, or when the process ends,
// however it ends. The error wraps ErrHeld if the lock was held for all of Patience.
func Lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(Patience); ; time.Sleep(retryEvery) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return f, nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		case time.Now().After(deadline):
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, ErrHeld), f.Close())
		}
	}
}
