package network

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"
	"golang.org/x/sys/unix"
)

// The bounds of what a plugin may say: results have a few kilobytes.
const (
	maxStdout = 1 << 20
	maxStderr = 16 << 10
)

// plugins runs CNI plugin programs for libcni (CNI spec, section 2). Unlike libcni's own way it ends a plugin together with
// the programs that the plugin started (bridge waits for its IPAM), so that one that hangs holds nobody up after its time;
// and it bounds what is read of them. libcni says in its errors which plugin it was.
type plugins struct{ version.PluginDecoder }

var _ invoke.Exec = &plugins{}

// FindInPath finds a plugin's program.
func (*plugins) FindInPath(plugin string, paths []string) (string, error) {
	return invoke.FindInPath(plugin, paths)
}

// ExecPlugin runs a plugin until it ends or ctx does, and returns what it wrote to its standard output.
func (*plugins) ExecPlugin(ctx context.Context, path string, stdin []byte, environ []string) ([]byte, error) {
	stdout, stderr, err := run(ctx, path, stdin, environ)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("it was ended, it took too long: %w", ctx.Err())
	case len(stdout) > maxStdout:
		return nil, fmt.Errorf("its answer has more than %d bytes", maxStdout)
	case err == nil && len(stdout) > 0 && !json.Valid(stdout):
		return nil, fmt.Errorf("its answer is not JSON: %.80q", stdout)
	case err == nil:
		return stdout, nil
	}
	var told types.Error
	if json.Unmarshal(stdout, &told) == nil && told.Code != 0 {
		return nil, &told
	}
	said := strings.TrimSpace(string(stdout) + " " + string(stderr))
	return nil, fmt.Errorf("%w: %.300q", err, said)
}

// busyTries is how often a program is tried that is just being written (a DaemonSet that installs it).
const busyTries = 5

func run(ctx context.Context, path string, stdin []byte, environ []string) (stdout, stderr []byte, err error) {
	for range busyTries {
		out, said := &bounded{max: maxStdout + 1, strict: true}, &bounded{max: maxStderr}
		cmd := exec.CommandContext(ctx, path)
		cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = environ, bytes.NewReader(stdin), out, said
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
		cmd.WaitDelay = time.Second // for somebody who left the group and holds the pipes
		if err = cmd.Run(); !errors.Is(err, syscall.ETXTBSY) {
			return out.kept, said.kept, err
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
	return nil, nil, err
}

// bounded keeps no more than max bytes of what is written to it: the rest is dropped or, if it is strict, an error for the
// writer. It is no bytes.Buffer: that would read a pipe to its end by itself (io.ReaderFrom).
type bounded struct {
	kept   []byte
	max    int
	strict bool
}

func (b *bounded) Write(p []byte) (int, error) {
	room := b.max - len(b.kept)
	b.kept = append(b.kept, p[:min(len(p), room)]...)
	if len(p) > room && b.strict {
		return room, io.ErrShortWrite
	}
	return len(p), nil
}
