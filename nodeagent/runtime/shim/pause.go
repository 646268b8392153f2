package shim

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// Pause is the mode "pause": process 1 of a shared PID namespace. It reaps the orphans of
// all containers in it until it is killed. It begins when a byte comes on stdin; if none
// does, whoever started it died before it had made a note of it, and it ends.
func Pause() {
	var begin [1]byte
	if n, _ := os.Stdin.Read(begin[:]); n == 0 {
		return
	}
	os.Stdin.Close()
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	for range children {
		for {
			pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			if pid <= 0 && err != unix.EINTR {
				break
			}
		}
	}
}
