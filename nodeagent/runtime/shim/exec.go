package shim

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Exec is the mode "exec": it runs args (a `runc exec --detach …` that writes pidFile)
// with this process' own streams, waits for the process that runc left behind and
// returns its exit code. An error means that there never was one; it also goes to the
// descriptor 3, so that the runtime can tell it from a code. SIGTERM kills the process and
// its group.
func Exec(pidFile string, args []string) (code int, err error) {
	unix.CloseOnExec(statusFD)
	status := os.NewFile(statusFD, "status")
	defer status.Close()
	term := make(chan os.Signal, 1)
	signal.Notify(term, unix.SIGTERM)
	pid, err := execStart(pidFile, args)
	if err != nil {
		fmt.Fprint(status, err)
		return 0, err
	}
	status.Close()
	go func() {
		<-term
		_ = unix.Kill(-pid, unix.SIGKILL) // runc made it a session leader
		_ = unix.Kill(pid, unix.SIGKILL)
	}()
	return waitFor(pid).Code, nil
}

func execStart(pidFile string, args []string) (int, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, err
	}
	log := pidFile + ".log"
	defer os.Remove(log)
	full := append([]string{"--log", log, "--log-format", "json"}, args[1:]...)
	cmd := exec.Command(args[0], full...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return 0, RuncError(log, err)
	}
	return readPID(filepath.Clean(pidFile))
}
