package install

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// readyLimit is how long Start waits for a service to be ready: many times what one takes that waits for nobody.
const readyLimit = time.Minute

// systemdRuns says whether the services of this machine are systemd's (sd_booted(3)), and are meant.
func (l Layout) systemdRuns() bool {
	_, err := os.Stat("/run/systemd/system")
	return l.Root == "" && err == nil
}

// Start has systemd start a role now and at every boot, and waits until the service says that it is ready, so that what a
// person does next finds it. One that waits for other servers is left to it after a minute. Without systemd Start says how
// to start it.
func Start(ctx context.Context, l Layout, role Role, out io.Writer) error {
	if !l.systemdRuns() {
		fmt.Fprintf(out, "systemd does not run here: start it with\n  %s %s --config %s\n", l.Program(), role, l.Config(role))
		return nil
	}
	for _, args := range [][]string{{"daemon-reload"}, {"enable", service(role)}} {
		if err := systemctl(args...); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	state := "is ready"
	// This is over when the service has told systemd that it is ready (sd_notify(3)), or has ended. systemd goes on starting it
	// in both cases, and when nobody waits for it any more.
	if err := exec.CommandContext(ctx, "systemctl", "restart", service(role)).Run(); err != nil {
		state = "is not ready yet"
	}
	fmt.Fprintf(out, "%s %s: systemctl status %s, journalctl -u %s\n", service(role), state, service(role), service(role))
	return nil
}

func systemctl(args ...string) error {
	if out, err := exec.Command("systemctl", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("systemctl %v: %w: %s", args, err, out)
	}
	return nil
}
