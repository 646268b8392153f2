package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// AwaitWhole waits until all machines run, their nodes are Ready, one server leads and the others follow it. The error says what
// is still wanting when ctx ends.
func (l *Lab) AwaitWhole(ctx context.Context) error {
	last := "nobody has said anything"
	for {
		now := wanting(l.Status(ctx))
		if now == "" {
			return nil
		}
		if ctx.Err() != nil { // what is said now is only that nobody waited for an answer
			return fmt.Errorf("lab: not whole: %s", last)
		}
		last = now
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("lab: not whole: %s", last)
		}
	}
}

// wanting says what is wrong with a lab; "" if nothing is.
func wanting(all []Status) string {
	leaders, terms := 0, map[uint64]bool{}
	for _, s := range all {
		switch {
		case s.State != stateRunning:
			return s.Host.Name + " is " + s.State
		case s.Host.Server && s.Store.Role != roleLeader && s.Store.Role != roleFollower:
			return fmt.Sprintf("%s is %q in the store %s", s.Host.Name, s.Store.Role, s.Trouble)
		case s.Node != nodeReady:
			return fmt.Sprintf("the node %s is %q", s.Host.Name, s.Node)
		}
		if s.Store.Role == roleLeader {
			leaders++
		}
		if s.Host.Server {
			terms[s.Store.Term] = true
		}
	}
	if leaders != 1 || len(terms) != 1 {
		return fmt.Sprintf("there are %d leaders and %d terms", leaders, len(terms))
	}
	return ""
}

// Command runs one of the commands that scenarios are made of, about this lab, and returns all that it says: lab and kubectl with
// their arguments, or kontiki.
func (l *Lab) Command(ctx context.Context, words []string, stdin string) (string, error) {
	var argv []string
	switch words[0] {
	case "lab":
		argv = append([]string{"lab", "--dir", l.Dir}, words[1:]...)
	case "kubectl":
		argv = words
	case "kontiki":
		argv = words[1:]
	default:
		return "", fmt.Errorf("lab: %q is none of lab, kubectl, kontiki", words[0])
	}
	cmd := exec.CommandContext(ctx, l.Program, argv...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+l.Kubeconfig(), "PATH="+filepath.Dir(l.Program)+":"+os.Getenv("PATH"))
	cmd.Stdin = strings.NewReader(stdin)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	return output.String(), err
}
