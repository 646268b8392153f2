package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"kontiki/internal/hostcheck"
	"kontiki/internal/lab"
)

// labTimeout bounds how long `lab up` waits for its nodes.
const labTimeout = 2 * time.Minute

// labFlags are common to the commands about the lab.
type labFlags struct{ dir string }

func labCommand() *cobra.Command {
	f := &labFlags{}
	cmd := &cobra.Command{
		Use: "lab", Short: "Run a cluster of several machines on this one, and break it", Args: rejectArgs,
		Long: `Run a cluster of several machines on this one, and break it. Each machine is a network namespace with an address of its own,
a data directory and a cgroup; they join each other as real ones do. Needs root.`,
	}
	cmd.PersistentFlags().StringVar(&f.dir, "dir", "/var/lib/kontiki-lab", "where the lab is kept")
	cmd.AddCommand(f.upCommand(), f.statusCommand(), f.leaderCommand(), f.followersCommand(), f.execCommand(), f.downCommand(),
		f.waitCommand(), f.writeCommand(), f.runCommand())
	f.addFaults(cmd)
	f.addHelpers(cmd)
	return cmd
}

// withLab opens the lab for a command that only looks, or acts on processes.
func (f *labFlags) withLab(run func(cmd *cobra.Command, l *lab.Lab, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		l, err := lab.Open(f.dir)
		if err != nil {
			return err
		}
		return run(cmd, l, args)
	}
}

// change opens the lab for a command that changes it, alone at the time.
func (f *labFlags) change(run func(ctx context.Context, l *lab.Lab, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return lab.Change(cmd.Context(), f.dir, func(l *lab.Lab) error {
			if err := l.CheckNetwork(); err != nil {
				return err
			}
			return run(cmd.Context(), l, args)
		})
	}
}

func (f *labFlags) upCommand() *cobra.Command {
	o := lab.Options{}
	cmd := &cobra.Command{Use: "up", Short: "Start a lab; done when all its nodes are Ready", Args: rejectArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			began := time.Now()
			l, err := f.up(cmd, o)
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "%d machines after %s\n  export KUBECONFIG=%s\n", len(l.Hosts), time.Since(began).Round(100*time.Millisecond), l.Kubeconfig())
			}
			return err
		}}
	cmd.Flags().IntVar(&o.Servers, "servers", 3, "machines with a store member and an API server")
	cmd.Flags().IntVar(&o.Agents, "agents", 0, "machines with an agent alone")
	cmd.Flags().BoolVar(&o.DualStack, "dual-stack", false, "addresses of both IP families for machines, pods and Services")
	cmd.Flags().StringArrayVar(&o.ServerFlags, "server-flag", nil, "one more flag of each server (--server-flag=--raft-log=boltdb); may be given again. They have "+strings.Join(lab.ServerDefaults, " "))
	cmd.Flags().StringArrayVar(&o.AgentFlags, "agent-flag", nil, "one more flag of each agent; may be given again")
	cmd.Flags().StringVar(&o.Runtime, "node-runtime", "runc", "what runs containers: runc or simulated")
	return cmd
}

// up starts a lab.
func (f *labFlags) up(cmd *cobra.Command, o lab.Options) (_ *lab.Lab, err error) {
	if o.Runtime != "runc" && o.Runtime != "simulated" {
		return nil, wrong("node-runtime", "%q is neither runc nor simulated", o.Runtime)
	}
	if o.Program, err = os.Executable(); err != nil {
		return nil, err
	}
	if os.Geteuid() != 0 {
		return nil, errors.New("a lab needs root: it makes network namespaces")
	}
	if lacking := hostcheck.Lacking(beside("runc"), ""); o.Runtime == "runc" && lacking != "" {
		return nil, fmt.Errorf("containers cannot run here (%s): use --node-runtime simulated", lacking)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), labTimeout)
	defer cancel()
	o.Dir, o.Progress = f.dir, cmd.OutOrStdout()
	return lab.Up(ctx, o)
}

func (f *labFlags) statusCommand() *cobra.Command {
	watch := false
	cmd := &cobra.Command{Use: "status", Short: "Show the machines: leader, term, indexes, revisions, nodes", Args: rejectArgs}
	cmd.RunE = f.withLab(func(cmd *cobra.Command, l *lab.Lab, _ []string) error {
		for {
			if watch {
				fmt.Fprint(cmd.OutOrStdout(), "\x1b[H\x1b[2J") // top left, and an empty screen
			}
			if err := printLab(cmd.OutOrStdout(), l.Status(cmd.Context())); err != nil || !watch {
				return err
			}
			select {
			case <-time.After(500 * time.Millisecond):
			case <-cmd.Context().Done():
				return nil
			}
		}
	})
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "again and again, until Ctrl-C")
	return cmd
}

func printLab(w io.Writer, all []lab.Status) error {
	out := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	fmt.Fprintln(out, "MACHINE\tADDRESS\tSTATE\tROLE\tTERM\tCOMMITTED\tAPPLIED\tREVISION\tNODE\tFAULTS")
	for _, s := range all {
		role, term, committed, applied, revision := "-", "-", "-", "-", "-"
		if s.Trouble == "" && s.Store.Role != "" {
			role, term, committed = s.Store.Role, fmt.Sprint(s.Store.Term), fmt.Sprint(s.Store.CommitIndex)
			applied, revision = fmt.Sprint(s.Store.Store.Applied), fmt.Sprint(s.Store.Store.Revision)
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", s.Host.Name, s.Host.Address, s.State,
			role, term, committed, applied, revision, orDash(s.Node), orDash(s.Host.Faults.String()))
	}
	if err := out.Flush(); err != nil {
		return err
	}
	for _, s := range all { // below, where it is not as wide as a column
		if s.Trouble != "" {
			fmt.Fprintf(w, "%s: %s\n", s.Host.Name, s.Trouble)
		}
	}
	return nil
}

func (f *labFlags) leaderCommand() *cobra.Command {
	return &cobra.Command{Use: "leader", Short: "Print the name of the machine that leads the store", Args: rejectArgs,
		RunE: f.withLab(func(cmd *cobra.Command, l *lab.Lab, _ []string) error {
			leader, _, err := l.Roles(cmd.Context())
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), leader)
			}
			return err
		})}
}

func (f *labFlags) followersCommand() *cobra.Command {
	return &cobra.Command{Use: "followers", Short: "Print the names of the servers that run and do not lead", Args: rejectArgs,
		RunE: f.withLab(func(cmd *cobra.Command, l *lab.Lab, _ []string) error {
			_, followers, err := l.Roles(cmd.Context())
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), strings.Join(followers, " "))
			}
			return err
		})}
}

func (f *labFlags) execCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "exec NODE COMMAND [ARGUMENT…]", Short: "Run a command on a machine: in its network and cgroup; kontiki and kubectl are the lab's",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usageError{fmt.Errorf("usage: %s", cmd.UseLine())}
			}
			return nil
		},
		RunE: f.withLab(func(_ *cobra.Command, l *lab.Lab, args []string) error {
			h, err := l.Host(args[0])
			if err != nil {
				return usageError{err}
			}
			err = h.Exec(withoutDashes(args[1:]))
			if exit := (&exec.ExitError{}); errors.As(err, &exit) {
				return exitCode(exit.ExitCode())
			}
			return err
		})}
	cmd.Flags().SetInterspersed(false) // the command's own flags are not ours
	return cmd
}

func (f *labFlags) downCommand() *cobra.Command {
	return &cobra.Command{Use: "down", Short: "End the lab and remove everything of it", Args: rejectArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.down(cmd.Context()) }}
}

// down ends the lab.
func (f *labFlags) down(ctx context.Context) error { return lab.Change(ctx, f.dir, (*lab.Lab).Down) }
