package main

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// background is a kontiki that runs beside a test, with its log in a file.
type background struct {
	t       *testing.T
	log     string
	env     []string  // in addition
	program string    // another file than this one
	cmd     *exec.Cmd // nil: not started yet
	ended   chan struct{}
}

// newBackground makes one that is killed with the test.
func newBackground(t *testing.T) *background {
	b := &background{t: t, log: filepath.Join(t.TempDir(), "log")}
	t.Cleanup(b.kill)
	return b
}

func (b *background) run(args ...string) {
	b.t.Helper()
	b.cmd, b.ended = program(args...), make(chan struct{})
	b.cmd.Path = cmp.Or(b.program, b.cmd.Path)
	b.cmd.Env = append(b.cmd.Env, b.env...)
	log, err := os.OpenFile(b.log, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	require.NoError(b.t, err)
	defer log.Close()
	b.cmd.Stderr = log
	require.NoError(b.t, b.cmd.Start())
	go func(cmd *exec.Cmd, ended chan struct{}) { _ = cmd.Wait(); close(ended) }(b.cmd, b.ended)
}

func (b *background) logged() string {
	text, err := os.ReadFile(b.log)
	require.NoError(b.t, err)
	return string(text)
}

func (b *background) kill() {
	if b.cmd != nil {
		_ = b.cmd.Process.Kill()
		<-b.ended
	}
}

func (b *background) stop() {
	b.t.Helper()
	require.NoError(b.t, b.cmd.Process.Signal(syscall.SIGTERM))
	<-b.ended
	require.Zero(b.t, b.cmd.ProcessState.ExitCode(), b.logged())
}
