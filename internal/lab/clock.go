package lab

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A kernel has one wall clock for all namespaces (time namespaces only move the monotonic one), and a static Go program has
// no library to put between. But it asks the time of the vDSO, a page of code that the kernel maps into each process: that is
// what is changed here, in this one process. Its clock_gettime becomes a system call that adds some seconds to CLOCK_REALTIME.
// Timers go by the monotonic clock, and stay right, as they do on a machine whose clock is set.

// maxClock is how far a clock can be moved: Kontiki's certificates have all expired by then.
const maxClock = 20 * 365 * 24 * time.Hour

// clockFunction is what Go calls (runtime/vdso_linux_amd64.go).
const clockFunction = "__vdso_clock_gettime"

// startClock is called on the thread that started the process under ptrace, which stands still before its first instruction.
func (h *Host) startClock(cmd *exec.Cmd) error {
	if h.Faults.Clock == 0 {
		return nil
	}
	pid := cmd.Process.Pid
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil || !status.Stopped() {
		return fmt.Errorf("lab: a new process does not stand still: %w", err)
	}
	err := setClock(pid, time.Duration(h.Faults.Clock))
	return errors.Join(err, syscall.PtraceDetach(pid))
}

// moveClock changes the clock of the running process, which stands still meanwhile.
func (h *Host) moveClock(ahead time.Duration) error {
	paused := h.state() == "T"
	for range 100 {
		if err := h.standStill(); err != nil {
			return err
		}
		moved, err := moveUnlessInside(h.PID, ahead)
		if !paused {
			err = errors.Join(err, h.Resume())
		}
		if moved || err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	return fmt.Errorf("lab: %s reads its clock all the time", h.Name)
}

// standStill pauses the process and waits until all its threads have stopped.
func (h *Host) standStill() error {
	if err := h.Pause(); err != nil {
		return err
	}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", h.PID))
		still := len(stats) > 0
		for _, path := range stats {
			stat, err := os.ReadFile(path)
			still = still && (err != nil || strings.Contains(string(stat), ") T "))
		}
		if still {
			return nil
		}
	}
	return fmt.Errorf("lab: %s does not stand still", h.Name)
}

// moveUnlessInside changes the clock if no thread is in the vDSO: it would go on in the middle of other code.
func moveUnlessInside(pid int, ahead time.Duration) (moved bool, err error) {
	from, to, err := vdsoOf(pid)
	if err != nil {
		return false, err
	}
	counters, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", pid))
	for _, path := range counters {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		fields := strings.Fields(string(text)) // proc_pid_syscall(5): the last one is the program counter
		counter, err := strconv.ParseUint(fields[len(fields)-1], 0, 64)
		if err != nil || counter >= from && counter < to {
			return false, nil
		}
	}
	return true, setClock(pid, ahead)
}

// setClock rewrites the function. The process stands still.
func setClock(pid int, ahead time.Duration) error {
	code := clockCode(int32(ahead / time.Second))
	if code == nil {
		return fmt.Errorf("%w: the code that moves a clock is written for amd64 alone, and this is %s", ErrUnsupported, runtime.GOARCH)
	}
	from, to, err := vdsoOf(pid)
	if err != nil {
		return err
	}
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("%w: move a clock: %w", ErrUnsupported, err)
	}
	defer memory.Close()
	image := make([]byte, to-from)
	if _, err := memory.ReadAt(image, int64(from)); err != nil {
		return fmt.Errorf("%w: move a clock: read the vDSO: %w", ErrUnsupported, err)
	}
	offset, err := clockOffset(image, len(code))
	if err != nil {
		return err
	}
	if _, err := memory.WriteAt(code, int64(from+offset)); err != nil {
		return fmt.Errorf("%w: move a clock: write to the vDSO: %w", ErrUnsupported, err)
	}
	return nil
}

// clockOffset finds the function in an image of the vDSO, which is an ELF library (vdso(7)), and that it has so many bytes.
func clockOffset(image []byte, size int) (uint64, error) {
	library, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return 0, fmt.Errorf("%w: move a clock: the vDSO: %w", ErrUnsupported, err)
	}
	symbols, err := library.DynamicSymbols()
	if err != nil {
		return 0, fmt.Errorf("%w: move a clock: the vDSO: %w", ErrUnsupported, err)
	}
	for _, s := range symbols {
		if s.Name == clockFunction && s.Size >= uint64(size) && s.Value+s.Size <= uint64(len(image)) {
			return s.Value, nil
		}
	}
	return 0, fmt.Errorf("%w: move a clock: the vDSO has no %s", ErrUnsupported, clockFunction)
}

// vdsoOf is where the vDSO is in a process (proc_pid_maps(5)).
func vdsoOf(pid int) (from, to uint64, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, 0, fmt.Errorf("lab: %w", err)
	}
	for line := range strings.Lines(string(maps)) {
		if strings.HasSuffix(strings.TrimSpace(line), "[vdso]") {
			_, err := fmt.Sscanf(line, "%x-%x", &from, &to)
			return from, to, err
		}
	}
	return 0, 0, fmt.Errorf("%w: move a clock: process %d has no vDSO", ErrUnsupported, pid)
}
