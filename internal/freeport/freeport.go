// Package freeport finds TCP ports for servers that must be told theirs before they start.
//
// Asking the kernel for port 0 and closing the listener again names a port that anybody may be given in the
// meantime: the next caller of the same trick, or any outgoing connection. The ports of this package lie below
// those that Linux gives out by itself (net.ipv4.ip_local_port_range starts at 32768), each is given once in a
// process, and a file lock keeps it from the other processes that use this package until this one has ended.
package freeport

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

const (
	first = 20000
	count = 10000
)

// ErrNone: every port of the range is in use.
var ErrNone = errors.New("no free port between 20000 and 29999")

var (
	mu    sync.Mutex // guards next and taken
	next  = os.Getpid() * 37 % count
	taken []*os.File // the locks, held until the process ends
)

// Take returns a port of 127.0.0.1 on which nobody listens, and that no other call returns while this process
// runs. Errors: ErrNone, or what keeps the lock files from being made.
func Take() (int, error) {
	mu.Lock()
	defer mu.Unlock()
	dir := filepath.Join(os.TempDir(), "kontiki-ports")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	for range count {
		port := first + next
		next = (next + 1) % count
		lock, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(port)), os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return 0, fmt.Errorf("lock port %d: %w", port, err)
		}
		// flock belongs to the open file: one that this process already holds is refused here as well.
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil && unused(port) {
			taken = append(taken, lock)
			return port, nil
		}
		_ = lock.Close()
	}
	return 0, ErrNone
}

func unused(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
