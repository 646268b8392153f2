package lab

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/internal/netnstest"
)

func TestFaultsInWords(t *testing.T) {
	require.Empty(t, Faults{}.String())
	all := Faults{Cut: []string{"s2", "s3"}, Loss: 20, Delay: Duration(time.Second), DiskWrites: 5, Clock: Duration(-time.Hour)}
	require.Equal(t, "cut off from s2,s3; loses 20%; delay 1s; disk 5 writes/s; clock -1h0m0s", all.String())
	text, err := json.Marshal(all)
	require.NoError(t, err)
	var read Faults
	require.NoError(t, json.Unmarshal(text, &read))
	require.Equal(t, all, read)
}

// TestChangesDoNotMeet: of two commands that change the lab at once, neither undoes what the other did.
func TestChangesDoNotMeet(t *testing.T) {
	dir := t.TempDir()
	require.ErrorIs(t, Change(t.Context(), dir, nil), ErrNoLab)
	require.NoError(t, (&Lab{Dir: dir, Hosts: []*Host{{Name: "s1"}}}).save())
	const each = 20
	done := make(chan error)
	for range 2 {
		go func() {
			for range each {
				err := Change(t.Context(), dir, func(l *Lab) error {
					l.Hosts[0].Faults.Loss++
					return l.save()
				})
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	require.NoError(t, errors.Join(<-done, <-done))
	l, err := Open(dir)
	require.NoError(t, err)
	require.Equal(t, 2*each, l.Hosts[0].Faults.Loss)
}

// TestOnePlace: a lab's directory is of no use in another network namespace; after a reboot namespaces may have each other's names.
func TestOnePlace(t *testing.T) {
	space, machine := netnstest.New(t, "elsewhere"), ""
	space.In(func() { machine = place() })
	dir := t.TempDir()
	require.NoError(t, (&Lab{Dir: dir, Place: place(), Hosts: []*Host{{Name: "s1"}}}).save())
	_, err := Open(dir)
	require.NoError(t, err)
	space.In(func() { err = Change(t.Context(), dir, func(*Lab) error { return nil }) })
	require.ErrorIs(t, err, ErrElsewhere)
	require.ErrorContains(t, err, machine)
	space.In(func() { _, err = Up(t.Context(), Options{Dir: dir, Servers: 1}) })
	require.ErrorIs(t, err, ErrElsewhere)

	for _, old := range []string{"", "net:[1] of boot another"} {
		require.NoError(t, (&Lab{Dir: dir, Place: old, Hosts: []*Host{{Name: "s1"}}}).save())
		_, err := Open(dir)
		require.NoError(t, err, old)
	}
}

// TestNothingRunsAfterAnError: a process that could not be made what it was to be (its clock, for instance) does not run on.
func TestNothingRunsAfterAnError(t *testing.T) {
	cmd := exec.Command("sleep", "300")
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // ptrace is of one thread
		done <- startAnd(cmd, func(cmd *exec.Cmd) error {
			var status syscall.WaitStatus
			_, err := syscall.Wait4(cmd.Process.Pid, &status, 0, nil)
			return errors.Join(err, syscall.PtraceDetach(cmd.Process.Pid), ErrUnsupported)
		})
	}()
	err := <-done
	if errors.Is(err, os.ErrPermission) {
		t.Skip("needs ptrace: ", err)
	}
	require.ErrorIs(t, err, ErrUnsupported)
	require.ErrorIs(t, syscall.Kill(cmd.Process.Pid, 0), syscall.ESRCH)
}

// TestForeignProcess: a pid that belongs to somebody else by now is not the lab's.
func TestForeignProcess(t *testing.T) {
	require.False(t, process{}.running())
	require.False(t, process{PID: os.Getpid(), Mark: "/somewhere/else"}.running())
	require.NoError(t, process{PID: os.Getpid(), Mark: "/somewhere/else"}.kill())
	other := exec.Command("sleep", "300")
	require.NoError(t, other.Start())
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	ours := process{PID: other.Process.Pid, Mark: "300"}
	require.Eventually(t, ours.running, time.Minute, time.Millisecond) // not before its exec
	require.NoError(t, ours.kill())
}

func TestThrottleRules(t *testing.T) {
	for _, c := range []struct {
		unified bool
		writes  int
		file    string
		rule    string
	}{
		{false, 10, "blkio.throttle.write_iops_device", "8:0 10"},
		{false, 0, "blkio.throttle.write_iops_device", "8:0 0"},
		{true, 10, "io.max", "8:0 wiops=10"},
		{true, 0, "io.max", "8:0 wiops=max"},
	} {
		file, rule := throttleRule(c.unified, "8:0", c.writes)
		require.Equal(t, c.file, file)
		require.Equal(t, c.rule, rule)
	}
	_, err := diskOf(filepath.Join("/proc", "self"))
	require.ErrorIs(t, err, ErrUnsupported)
}

// TestClockOfAProcess moves the clock of a process that is not ours alone: this test's own binary, which prints the time.
func TestClockOfAProcess(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("clocks are moved on amd64 alone")
	}
	if os.Getenv("LAB_TEST_CLOCK") != "" {
		_, _ = os.Stdin.Read(make([]byte, 1)) // until the clock is moved
		before := time.Now()
		time.Sleep(time.Millisecond)
		text, _ := json.Marshal([]any{time.Now(), time.Since(before)})
		_, _ = os.Stdout.Write(append(text, '\n'))
		os.Exit(0)
	}
	self := exec.Command(os.Args[0], "-test.run", "TestClockOfAProcess")
	self.Env = append(os.Environ(), "LAB_TEST_CLOCK=1")
	in, err := self.StdinPipe()
	require.NoError(t, err)
	out, err := self.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, self.Start())
	t.Cleanup(func() { _ = self.Process.Kill(); _ = self.Wait() })
	h := &Host{Name: "s1", process: process{PID: self.Process.Pid, Mark: "-test.run"}}
	require.Eventually(t, func() bool { return h.running() && hasVDSO(h.PID) }, time.Minute, time.Millisecond)
	if err := h.moveClock(-48 * time.Hour); errors.Is(err, ErrUnsupported) || errors.Is(err, os.ErrPermission) {
		t.Skip("this machine does not let anybody write into a process: ", err)
	} else {
		require.NoError(t, err)
	}
	require.NoError(t, h.moveClock(48*time.Hour)) // and once more: it does not add up
	_, err = in.Write([]byte("\n"))
	require.NoError(t, err)
	var said []json.RawMessage
	require.NoError(t, json.NewDecoder(out).Decode(&said))
	var then time.Time
	var passed time.Duration
	require.NoError(t, json.Unmarshal(said[0], &then))
	require.NoError(t, json.Unmarshal(said[1], &passed))
	require.InDelta(t, 48, time.Until(then).Hours(), 1)
	require.Less(t, passed, time.Hour, "what has passed goes by the monotonic clock")
}

func hasVDSO(pid int) bool {
	_, _, err := vdsoOf(pid)
	return err == nil
}

// TestRestartedMachine: a restart leaves a lab's files alone, which is said instead of what is missing first.
func TestRestartedMachine(t *testing.T) {
	space := netnstest.New(t, "restarted")
	var lost error
	space.In(func() { lost = (&Lab{}).CheckNetwork() })
	require.ErrorIs(t, lost, ErrLost)
	space.In(func() { lost = errors.Join((&Lab{}).makeBridge(), (&Lab{}).CheckNetwork()) })
	require.NoError(t, lost)
}
