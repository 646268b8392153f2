package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kontiki/nodeagent/runtime/shim"
)

// execution is one process started inside a running container.
type execution struct {
	cmd     *exec.Cmd // kontiki-shim exec
	files   string    // common beginning of its temporary files' names
	status  *os.File  // why it could not be started
	outputs []*output
	child   []*os.File // the process' ends of its streams, closed once it has them
}

// execLimit bounds the output that ExecSync keeps of each stream (16 MiB, as containerd).
const execLimit = 16 << 20

// runningContainer finds a container and checks that it runs.
func (r *Runtime) runningContainer(id string) (*container, error) {
	c, err := r.container(id)
	if err != nil {
		return nil, err
	}
	if !r.running(c) {
		return nil, fmt.Errorf("%w: container %s does not run", ErrState, c.rec.ID)
	}
	return c, nil
}

// newExecution prepares cmdline to run in c, as the same user and with the same environment
// as its process 1. close removes its files.
func (r *Runtime) newExecution(c *container, cmdline []string, tty bool) (*execution, error) {
	if len(cmdline) == 0 {
		return nil, fmt.Errorf("%w: no command", ErrInvalid)
	}
	var spec specs.Spec
	if found, err := shim.ReadFile(filepath.Join(c.dir, "config.json"), &spec); err != nil || !found {
		return nil, fmt.Errorf("config.json: found %v: %w", found, err)
	}
	p := spec.Process
	p.Args, p.Terminal = cmdline, tty
	if tty {
		p.Env = lastWins(append(p.Env, "TERM=xterm"))
	}
	e := &execution{files: filepath.Join(c.dir, "exec-"+newID())}
	if err := shim.WriteFile(e.files+".json", p); err != nil {
		return nil, err
	}
	args := append([]string{"exec", e.files + ".pid"}, r.cfg.runc()...)
	args = append(args, "exec", "--detach", "--process", e.files+".json", "--pid-file", e.files+".pid")
	if tty {
		args = append(args, "--console-socket", filepath.Base(e.files)+".sock")
	}
	e.cmd = exec.Command(r.cfg.ShimPath, append(args, c.rec.ID)...)
	e.cmd.Dir = c.dir
	return e, nil
}

func (e *execution) close() {
	for _, ext := range []string{".json", ".pid", ".pid.log", ".sock"} {
		_ = os.Remove(e.files + ext)
	}
	closeAll(e.child)
	if e.status != nil {
		e.status.Close()
	}
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// pipe makes a pipe and remembers the process' end.
func (e *execution) pipe(forInput bool) (ours, theirs *os.File, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	ours, theirs = r, w
	if forInput {
		ours, theirs = w, r
	}
	e.child = append(e.child, theirs)
	return ours, theirs, nil
}

// capture copies the process' stdout and stderr to the writers; nil means to nowhere.
func (e *execution) capture(stdout, stderr io.Writer) error {
	for _, t := range []struct {
		to     io.Writer
		stream *io.Writer
	}{{stdout, &e.cmd.Stdout}, {stderr, &e.cmd.Stderr}} {
		if t.to == nil {
			continue
		}
		r, w, err := e.pipe(false)
		if err != nil {
			return err
		}
		*t.stream = w
		e.outputs = append(e.outputs, startOutput(r, t.to))
	}
	return nil
}

// start starts the process.
func (e *execution) start() error {
	status, child, err := os.Pipe()
	if err != nil {
		return err
	}
	defer child.Close()
	e.status = status
	e.cmd.ExtraFiles = []*os.File{child}
	if err := e.cmd.Start(); err != nil {
		return err
	}
	closeAll(e.child)
	e.child = nil
	return nil
}

// wait returns the exit code, after all output. When ctx ends first, the process is
// killed, with its group.
func (e *execution) wait(ctx context.Context) (int, error) {
	stop := context.AfterFunc(ctx, func() { _ = e.cmd.Process.Signal(unix.SIGTERM) })
	defer stop()
	why, _ := io.ReadAll(e.status) // ends when the process has started or cannot
	err := e.cmd.Wait()
	for _, o := range e.outputs {
		o.finish()
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if len(why) > 0 {
		return 0, fmt.Errorf("exec: %s", why)
	}
	var exit *exec.ExitError
	if err == nil || errors.As(err, &exit) {
		return e.cmd.ProcessState.ExitCode(), nil
	}
	return 0, fmt.Errorf("exec: %w", err)
}

// listenConsole makes the socket to which runc sends the terminal.
func (e *execution) listenConsole() (*net.UnixListener, error) {
	dir, err := os.Open(filepath.Dir(e.files)) // see shim.Dial
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	path := fmt.Sprintf("/proc/self/fd/%d/%s.sock", dir.Fd(), filepath.Base(e.files))
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err == nil {
		l.SetUnlinkOnClose(false) // the path is good only while dir is open
	}
	return l, err
}

// ExecSync runs a command to its end and returns its output: what probes and hooks use.
// After Timeout seconds (0 is never) the command and its process group are killed.
func (r *Runtime) ExecSync(ctx context.Context, req *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	c, err := r.runningContainer(req.GetContainerId())
	if err != nil {
		return nil, err
	}
	if t := req.GetTimeout(); t > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(t)*time.Second)
		defer cancel()
	}
	e, err := r.newExecution(c, req.GetCmd(), false)
	if err != nil {
		return nil, err
	}
	defer e.close()
	var stdout, stderr limitedBuffer
	if err := e.capture(&stdout, &stderr); err != nil {
		return nil, err
	}
	if err := e.start(); err != nil {
		return nil, fmt.Errorf("exec in %s: %w", c.rec.ID, err)
	}
	code, err := e.wait(ctx)
	if err != nil {
		return nil, fmt.Errorf("exec in %s: command %q: %w", c.rec.ID, req.GetCmd(), err)
	}
	return &runtimeapi.ExecSyncResponse{Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), ExitCode: int32(code)}, nil
}

// limitedBuffer keeps the first execLimit bytes and swallows the rest.
type limitedBuffer struct{ bytes.Buffer }

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if room := execLimit - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
