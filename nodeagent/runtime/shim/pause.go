package shim

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// Pause is the mode "pause": process 1 of a shared PID namespace. It reaps the orphans of
// all containers in it until it is killed.
func Pause() {
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
