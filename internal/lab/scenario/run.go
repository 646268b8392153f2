package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Command runs a command, given as its words, and returns all that it has said. The error is that of its exit.
type Command func(ctx context.Context, words []string, stdin string) (output string, err error)

// Config is how to run a scenario.
type Config struct {
	Command Command
	Out     io.Writer // gets what a spectator reads
}

// expectEvery is how soon an expect tries again.
const expectEvery = 100 * time.Millisecond

// background is a command that goes on beside the steps.
type background struct {
	stop   context.CancelFunc
	done   chan struct{} // closed when it has ended
	output string        // valid then, as is err
	err    error
}

// run is a scenario that is being run.
type run struct {
	Config
	values     map[string]string
	background map[string]*background
}

// Run runs a scenario. The error wraps ErrFailed and names the step that did not do what it says.
func (s *Scenario) Run(ctx context.Context, config Config) (err error) {
	r := &run{Config: config, values: map[string]string{}, background: map[string]*background{}}
	r.printHead(s)
	defer func() {
		r.end()
		r.finally(context.WithoutCancel(ctx), s.Finally)
	}()
	for i := range s.Steps {
		if err := r.step(ctx, &s.Steps[i]); err != nil {
			return fmt.Errorf("%w at step %d, %s: %w", ErrFailed, i+1, s.Steps[i].name(), err)
		}
	}
	return nil
}

// name is what the step is called in errors.
func (s *Step) name() string {
	if s.Wait != "" {
		return "wait " + s.Wait
	}
	return s.command()
}

func (r *run) step(ctx context.Context, s *Step) error {
	switch {
	case s.Say != "":
		r.printText(expand(s.Say, r.values))
		return nil
	case s.Background != "":
		return r.start(ctx, s)
	case s.Wait != "":
		return r.await(ctx, s)
	case s.Expect != "":
		return r.expect(ctx, s)
	}
	line := expand(s.Run, r.values)
	r.printCommand(line, "")
	limited, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	output, err := r.call(limited, line, expand(s.Stdin, r.values))
	if !s.Quiet {
		r.printOutput(output)
	}
	switch { // also where it should fail: that it hangs is not what the step says
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		return fmt.Errorf("it took more than %s: %s", s.within, strings.TrimSpace(output))
	}
	return r.judge(s, output, err)
}

func (r *run) call(ctx context.Context, line, stdin string) (string, error) {
	words, err := split(line)
	if err != nil {
		return "", err
	}
	return r.Command(ctx, words, stdin)
}

// expect tries until the step is as it should be.
func (r *run) expect(ctx context.Context, s *Step) error {
	line := expand(s.Expect, r.values)
	r.printCommand(line, " (within "+s.within.String()+")")
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	for {
		output, failed := r.call(limited, line, "")
		err := r.judge(s, output, failed)
		if err == nil {
			if !s.Quiet {
				r.printOutput(output)
			}
			r.printSeen(time.Since(began))
			return nil
		}
		select {
		case <-time.After(expectEvery):
		case <-limited.Done():
			return errors.Join(err, ctx.Err())
		}
	}
}

// judge says whether a command did what the step says, and sets the step's variables.
func (r *run) judge(s *Step, output string, failed error) error {
	said := ": " + strings.TrimSpace(output)
	switch {
	case failed != nil && !s.Fails:
		return fmt.Errorf("%w%s", failed, said)
	case failed == nil && s.Fails:
		return fmt.Errorf("it succeeded, and should not%s", said)
	}
	for _, text := range s.Says {
		if text = expand(text, r.values); !strings.Contains(output, text) {
			return fmt.Errorf("it does not say %q%s", text, said)
		}
	}
	for _, text := range s.Lacks {
		if text = expand(text, r.values); strings.Contains(output, text) {
			return fmt.Errorf("it says %q%s", text, said)
		}
	}
	return r.take(s, output)
}

// take sets the step's variables.
func (r *run) take(s *Step, output string) error {
	values := strings.Fields(output)
	if s.Find != "" {
		find, err := s.pattern(r.values)
		if err != nil {
			return err
		}
		matches := find.FindAllStringSubmatch(output, -1)
		if len(matches) == 0 {
			return fmt.Errorf("%s is not in it: %s", find, strings.TrimSpace(output))
		}
		values = matches[len(matches)-1][1:]
	}
	if len(values) < len(s.As) {
		return fmt.Errorf("it says %d words for %d variables: %s", len(values), len(s.As), strings.TrimSpace(output))
	}
	for i, name := range s.As {
		r.values[name] = values[i]
	}
	for _, text := range s.Check {
		if err := compare(expand(text, r.values)); err != nil {
			return err
		}
	}
	return nil
}

// start begins a background command, which end or await ends.
func (r *run) start(ctx context.Context, s *Step) error {
	line := expand(s.Run, r.values)
	r.printCommand(line, " &")
	words, err := split(line)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	b := &background{stop: stop, done: make(chan struct{})}
	r.background[s.Background] = b
	stdin := expand(s.Stdin, r.values)
	go func() {
		defer close(b.done)
		b.output, b.err = r.Command(ctx, words, stdin)
	}()
	return nil
}

// await waits for a background command.
func (r *run) await(ctx context.Context, s *Step) error {
	b := r.background[s.Wait]
	select {
	case <-b.done:
	case <-time.After(s.within):
		return fmt.Errorf("it has not ended after %s", s.within)
	case <-ctx.Done():
		return ctx.Err()
	}
	r.printCommand("wait for "+s.Wait, "")
	if !s.Quiet {
		r.printOutput(b.output)
	}
	return r.judge(s, b.output, b.err)
}

// end ends the background commands.
func (r *run) end() {
	for _, b := range r.background {
		b.stop()
		<-b.done
	}
}

// finally runs the last commands; those with variables that are not set are left out, as what they are about was not made.
func (r *run) finally(ctx context.Context, lines []string) {
	for _, line := range lines {
		if checkVariables(line, r.set()) != nil {
			continue
		}
		line = expand(line, r.values)
		r.printCommand(line, "")
		limited, cancel := context.WithTimeout(ctx, defaultWithin)
		if output, err := r.call(limited, line, ""); err != nil {
			r.printOutput(output)
		}
		cancel()
	}
}

// set are the variables that have a value.
func (r *run) set() map[string]bool {
	set := map[string]bool{}
	for name := range r.values {
		set[name] = true
	}
	return set
}

// compare is nil if a comparison of two numbers holds.
func compare(text string) error {
	words := strings.Fields(text)
	if len(words) != 3 {
		return fmt.Errorf("%q does not compare two numbers", text)
	}
	a, errA := strconv.ParseInt(words[0], 10, 64)
	b, errB := strconv.ParseInt(words[2], 10, 64)
	if err := errors.Join(errA, errB); err != nil {
		return fmt.Errorf("%q does not compare two numbers: %w", text, err)
	}
	if holds := map[string]bool{">": a > b, "<": a < b, "=": a == b}[words[1]]; !holds {
		return fmt.Errorf("%s does not hold", text)
	}
	return nil
}
