package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
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
	cmd.AddCommand(f.upCommand(), f.statusCommand(), f.execCommand(), f.partitionCommand(), f.downCommand(),
		f.hostCommand("kill", "End a machine's kontiki at once, as a crash does; its containers run on", (*lab.Host).Kill),
		f.hostCommand("stop", "End a machine's kontiki as a shutdown does", (*lab.Host).Stop),
		f.hostCommand("start", "Run a machine's kontiki again", (*lab.Host).Start),
		f.hostCommand("reboot", "Have a machine lose all that a reset takes: processes and containers, network, mounts; and start again", (*lab.Host).Reboot),
		f.hostCommand("pause", "Have a machine's kontiki stand still, as one that hangs", (*lab.Host).Pause),
		f.hostCommand("resume", "Have it go on", (*lab.Host).Resume),
		f.amountCommand("delay NODE MILLISECONDS", "Have the packets that a machine sends wait; 0 for no delay",
			func(_ context.Context, h *lab.Host, n int) error { return h.Delay(n) }),
		f.amountCommand("loss NODE PERCENT", "Have a machine lose packets, in both directions; 0 for none",
			func(ctx context.Context, h *lab.Host, n int) error { return h.Loss(ctx, n) }),
		&cobra.Command{Use: "heal", Short: "Take back all that was broken, and start what does not run", Args: rejectArgs,
			RunE: f.withLab(func(cmd *cobra.Command, l *lab.Lab, _ []string) error { return l.Heal(cmd.Context()) })})
	return cmd
}

// withLab opens the lab for a command.
func (f *labFlags) withLab(run func(cmd *cobra.Command, l *lab.Lab, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		l, err := lab.Open(f.dir)
		if err != nil {
			return err
		}
		return run(cmd, l, args)
	}
}

func (f *labFlags) upCommand() *cobra.Command {
	o := lab.Options{}
	cmd := &cobra.Command{Use: "up", Short: "Start a lab; done when all its nodes are Ready", Args: rejectArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Runtime != "runc" && o.Runtime != "simulated" {
				return wrong("node-runtime", "%q is neither runc nor simulated", o.Runtime)
			}
			if o.Program, err = os.Executable(); err != nil {
				return err
			}
			if os.Geteuid() != 0 {
				return errors.New("a lab needs root: it makes network namespaces")
			}
			if lacking := hostcheck.Lacking(beside("runc"), ""); o.Runtime == "runc" && lacking != "" {
				return fmt.Errorf("containers cannot run here (%s): use --node-runtime simulated", lacking)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), labTimeout)
			defer cancel()
			began := time.Now()
			o.Dir, o.Progress = f.dir, cmd.OutOrStdout()
			l, err := lab.Up(ctx, o)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d machines after %s\n  export KUBECONFIG=%s\n", len(l.Hosts), time.Since(began).Round(100*time.Millisecond), l.Kubeconfig())
			return nil
		}}
	cmd.Flags().IntVar(&o.Servers, "servers", 3, "machines with a store member and an API server")
	cmd.Flags().IntVar(&o.Agents, "agents", 0, "machines with an agent alone")
	cmd.Flags().StringVar(&o.Runtime, "node-runtime", "runc", "what runs containers: runc or simulated")
	return cmd
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
	fmt.Fprintln(out, "MACHINE\tADDRESS\tSTATE\tROLE\tTERM\tCOMMITTED\tAPPLIED\tREVISION\tNODE")
	for _, s := range all {
		role, term, committed, applied, revision := "-", "-", "-", "-", "-"
		if s.Trouble == "" && s.Store.Role != "" {
			role, term, committed = s.Store.Role, fmt.Sprint(s.Store.Term), fmt.Sprint(s.Store.CommitIndex)
			applied, revision = fmt.Sprint(s.Store.Store.Applied), fmt.Sprint(s.Store.Store.Revision)
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			s.Host.Name, s.Host.Address, s.State, role, term, committed, applied, revision, orDash(s.Node))
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

func (f *labFlags) execCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "exec NODE COMMAND [ARGUMENT…]", Short: "Run a command in a machine's network",
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

// hostCommand is a command about one machine.
func (f *labFlags) hostCommand(name, short string, run func(*lab.Host) error) *cobra.Command {
	return &cobra.Command{Use: name + " NODE", Short: short, Args: exactArgs(1),
		RunE: f.withLab(func(_ *cobra.Command, l *lab.Lab, args []string) error {
			h, err := l.Host(args[0])
			if err != nil {
				return usageError{err}
			}
			return run(h)
		})}
}

// amountCommand is a command about one machine and a number.
func (f *labFlags) amountCommand(use, short string, run func(context.Context, *lab.Host, int) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: exactArgs(2),
		RunE: f.withLab(func(cmd *cobra.Command, l *lab.Lab, args []string) error {
			h, err := l.Host(args[0])
			if err != nil {
				return usageError{err}
			}
			n, err := strconv.Atoi(args[1])
			if err != nil {
				return usageError{fmt.Errorf("%q is not a number", args[1])}
			}
			return run(cmd.Context(), h, n)
		})}
}

func (f *labFlags) partitionCommand() *cobra.Command {
	return &cobra.Command{Use: "partition NODES '|' NODES", Short: "Cut the lab in parts that do not hear each other",
		Long:    "Cut the lab in parts that do not hear each other. It takes the place of an earlier partition. Machines that are in no part are in the first.",
		Example: "  kontiki lab partition s1 '|' s2,s3",
		RunE: f.withLab(func(cmd *cobra.Command, l *lab.Lab, args []string) error {
			var groups [][]string
			for _, part := range strings.Split(strings.Join(args, ","), "|") {
				groups = append(groups, strings.FieldsFunc(part, func(r rune) bool { return r == ',' || r == ' ' }))
			}
			if len(groups) < 2 {
				return usageError{fmt.Errorf("usage: %s", cmd.UseLine())}
			}
			if err := l.Partition(cmd.Context(), groups...); err != nil {
				return usageError{err}
			}
			return nil
		})}
}

func (f *labFlags) downCommand() *cobra.Command {
	return &cobra.Command{Use: "down", Short: "End the lab and remove everything of it", Args: rejectArgs,
		RunE: f.withLab(func(_ *cobra.Command, l *lab.Lab, _ []string) error { return l.Down() })}
}
