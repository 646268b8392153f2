package compare

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"kontiki/internal/bench/load"
	"kontiki/internal/bench/member"
)

// process is a member's process.
type process struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *bufio.Scanner
	ended   func() error // waits

	mu sync.Mutex // held by who asks
}

func startProcess(binary string, spec member.Spec) (*process, error) {
	arg, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(binary, member.Command, string(arg))}
	p.cmd.Stderr = os.Stderr
	// Ctrl-C is for the bench alone, which then ends its members.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.answers = bufio.NewScanner(out)
	p.ended = sync.OnceValue(p.cmd.Wait)
	return p, p.cmd.Start()
}

// ask sends a request and waits for its answer.
func (p *process) ask(r member.Request) (load.Measured, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := json.NewEncoder(p.in).Encode(r); err != nil {
		return load.Measured{}, fmt.Errorf("ask a member: %w", err)
	}
	if !p.answers.Scan() {
		return load.Measured{}, fmt.Errorf("member did not answer: %w", errors.Join(io.ErrUnexpectedEOF, p.answers.Err()))
	}
	var a member.Answer
	if err := json.Unmarshal(p.answers.Bytes(), &a); err != nil {
		return load.Measured{}, err
	}
	if a.Error != "" {
		return a.Measured, errors.New(a.Error)
	}
	return a.Measured, nil
}

// kill is kill -9. It may be called again.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	_ = p.ended()
}

// usage is what a process uses.
type usage struct {
	cpuSeconds     float64
	resident, anon float64 // MiB
}

// clockTicks is the unit of times in /proc/PID/stat: USER_HZ, 100 a second on every Linux.
const clockTicks = 100

func (p *process) usage() (u usage, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return u, err
	}
	// The second field, the program's name, may contain anything and ends with the last parenthesis.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	for _, f := range fields[11:13] { // utime, stime: fields 14 and 15 of proc(5)
		ticks, err := strconv.Atoi(f)
		if err != nil {
			return u, err
		}
		u.cpuSeconds += float64(ticks) / clockTicks
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) == 3 {
			kib, _ := strconv.ParseFloat(f[1], 64)
			switch f[0] {
			case "VmRSS:":
				u.resident = kib / 1024
			case "RssAnon:":
				u.anon = kib / 1024
			}
		}
	}
	return u, err
}
