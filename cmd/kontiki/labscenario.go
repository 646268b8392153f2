package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"kontiki/internal/lab"
	"kontiki/internal/lab/scenario"
)

// wholeTimeout is how long a lab may take to be whole again when it has been healed.
const wholeTimeout = time.Minute

func (f *labFlags) waitCommand() *cobra.Command {
	timeout := wholeTimeout
	cmd := &cobra.Command{Use: "wait", Short: "Wait until all machines run, their nodes are Ready and a leader is followed", Args: rejectArgs,
		RunE: f.withLab(func(cmd *cobra.Command, l *lab.Lab, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return l.AwaitWhole(ctx)
		})}
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "how long to wait")
	return cmd
}

func (f *labFlags) runCommand() *cobra.Command {
	return &cobra.Command{Use: "run FILE…", Short: "Run scenarios (docs/labs/*.yaml) and print what they explain; without a lab, one is started for them",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{fmt.Errorf("usage: %s", cmd.UseLine())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := readScenarios(args)
			if err != nil {
				return usageError{err}
			}
			return f.runScenarios(cmd, all)
		}}
}

func readScenarios(paths []string) (all []*scenario.Scenario, err error) {
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		s, err := scenario.Parse(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, s)
	}
	return all, nil
}

// runScenarios runs them in the lab that there is, or in one that is made for them and ends with them.
func (f *labFlags) runScenarios(cmd *cobra.Command, all []*scenario.Scenario) (err error) {
	_, err = lab.Open(f.dir)
	if errors.Is(err, lab.ErrNoLab) {
		o := lab.Options{Runtime: "runc"}
		for _, s := range all {
			o.Servers, o.Agents = max(o.Servers, s.Needs.Servers), max(o.Agents, s.Needs.Agents)
		}
		if _, err = f.up(cmd, o); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.down(context.WithoutCancel(cmd.Context()))) }()
	}
	if err != nil {
		return err
	}
	for _, s := range all {
		if err := f.runScenario(cmd, s); err != nil {
			return err
		}
	}
	return nil
}

// runScenario runs one in the lab as the last one left it, and heals the lab, whatever comes of it.
func (f *labFlags) runScenario(cmd *cobra.Command, s *scenario.Scenario) error {
	l, err := lab.Open(f.dir)
	if err != nil {
		return err
	}
	servers, agents := 0, 0
	for _, h := range l.Hosts {
		if h.Server {
			servers++
		} else {
			agents++
		}
	}
	if servers < s.Needs.Servers || agents < s.Needs.Agents {
		return fmt.Errorf("%q needs a lab of %d servers and %d agents: this one has %d and %d", s.Title, s.Needs.Servers, s.Needs.Agents, servers, agents)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), wholeTimeout)
	defer cancel()
	if err := l.AwaitWhole(ctx); err != nil {
		return fmt.Errorf("before %q: %w", s.Title, err)
	}
	failed := s.Run(cmd.Context(), scenario.Config{Command: l.Command, Out: cmd.OutOrStdout()})
	ctx = context.WithoutCancel(cmd.Context())
	healed := lab.Change(ctx, filepath.Clean(f.dir), func(l *lab.Lab) error { return l.Heal(ctx) })
	if failed == nil {
		fmt.Fprintf(cmd.OutOrStdout(), "\nAll of it held: %s.\n\n", s.Title)
	}
	return errors.Join(failed, healed)
}
