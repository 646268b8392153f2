package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kontiki/internal/lab"
)

// addFaults adds the commands that break something, and the one that heals it.
func (f *labFlags) addFaults(cmd *cobra.Command) {
	cmd.AddCommand(
		f.signalCommand("kill", "End a machine's kontiki at once, as a crash does; its containers run on", (*lab.Host).Kill),
		f.signalCommand("stop", "End a machine's kontiki as a shutdown does", (*lab.Host).Stop),
		f.signalCommand("pause", "Have a machine's kontiki stand still, as one that hangs", (*lab.Host).Pause),
		f.signalCommand("resume", "Have it go on", (*lab.Host).Resume),
		f.partitionCommand(),
		f.faultCommand("start NODE", "Run a machine's kontiki again",
			func(_ context.Context, h *lab.Host, _ string) error { return h.Start() }),
		f.faultCommand("reboot NODE", "Have a machine lose all that a reset takes: processes and containers, network, mounts; and start again",
			func(ctx context.Context, h *lab.Host, _ string) error { return h.Reboot(ctx) }),
		f.faultCommand("delay NODE DURATION", "Have the packets that a machine sends wait (100ms); 0 for no delay",
			func(_ context.Context, h *lab.Host, text string) error { return withDuration(text, h.Delay) }),
		f.faultCommand("loss NODE PERCENT", "Have a machine lose packets, in both directions; 0 for none",
			func(ctx context.Context, h *lab.Host, text string) error {
				return withNumber(text, func(n int) error { return h.Loss(ctx, n) })
			}),
		f.faultCommand("slow-disk NODE WRITES", "Have a machine's disk make so many writes a second; 0 for as many as it can",
			func(_ context.Context, h *lab.Host, text string) error { return withNumber(text, h.SlowDisk) }),
		f.faultCommand("clock NODE DURATION", "Have a machine's kontiki see another time (+1h, -30m); 0 for the right one",
			func(_ context.Context, h *lab.Host, text string) error { return withDuration(text, h.SetClock) }),
		&cobra.Command{Use: "heal", Short: "Take back all that was broken, and start what does not run", Args: rejectArgs,
			RunE: f.change(func(ctx context.Context, l *lab.Lab, _ []string) error { return l.Heal(ctx) })},
	)
}

// signalCommand is about the process of one machine. Others may change the lab meanwhile.
func (f *labFlags) signalCommand(name, short string, run func(*lab.Host) error) *cobra.Command {
	return &cobra.Command{Use: name + " NODE", Short: short, Args: exactArgs(1),
		RunE: f.withLab(func(_ *cobra.Command, l *lab.Lab, args []string) error {
			h, err := l.Host(args[0])
			if err != nil {
				return usageError{err}
			}
			return run(h)
		})}
}

// faultCommand changes one machine, by the last argument if there are two.
func (f *labFlags) faultCommand(use, short string, run func(ctx context.Context, h *lab.Host, argument string) error) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: exactArgs(len(strings.Fields(use)) - 1),
		RunE: f.change(func(ctx context.Context, l *lab.Lab, args []string) error {
			h, err := l.Host(args[0])
			if err != nil {
				return usageError{err}
			}
			return run(ctx, h, args[len(args)-1])
		})}
	// A negative duration is an argument: what begins with a dash and a letter alone is a flag.
	cmd.Flags().SetInterspersed(false)
	return cmd
}

func withNumber(text string, run func(int) error) error {
	n, err := strconv.Atoi(text)
	if err != nil {
		return usageError{fmt.Errorf("%q is not a number", text)}
	}
	return run(n)
}

func withDuration(text string, run func(time.Duration) error) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return usageError{fmt.Errorf("%q is not a duration such as 100ms or 1h30m", text)}
	}
	return run(d)
}

func (f *labFlags) partitionCommand() *cobra.Command {
	return &cobra.Command{Use: "partition NODES '|' NODES", Short: "Cut the lab in parts that do not hear each other",
		Long:    "Cut the lab in parts that do not hear each other. It takes the place of an earlier partition. Machines that are in no part are in the first.",
		Example: "  kontiki lab partition s1 '|' s2,s3",
		RunE: f.change(func(ctx context.Context, l *lab.Lab, args []string) error {
			var groups [][]string
			for _, part := range strings.Split(strings.Join(args, ","), "|") {
				groups = append(groups, strings.FieldsFunc(part, func(r rune) bool { return r == ',' || r == ' ' }))
			}
			if len(groups) < 2 || slices.ContainsFunc(groups[1:], func(g []string) bool { return len(g) == 0 }) {
				return usageError{fmt.Errorf("usage: kontiki lab partition NODES '|' NODES")}
			}
			if err := l.Partition(ctx, groups...); err != nil {
				return usageError{err}
			}
			return nil
		})}
}
