package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"
)

// The main goroutine keeps the main thread for itself: /proc/self shows that thread's namespaces,
// and code that changes a thread's namespaces must never meet it.
func init() { runtime.LockOSThread() }

func main() {
	if name := filepath.Base(os.Args[0]); name == "kubectl" {
		kubectl(os.Args)
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "kubectl" {
		kubectl(os.Args[1:])
		return
	}
	ctx := interruptible(context.Background())
	err := rootCommand().ExecuteContext(ctx)
	if err == nil {
		return
	}
	if code := exitCode(0); errors.As(err, &code) { // whoever ended so has said why
		os.Exit(int(code))
	}
	fmt.Fprintln(os.Stderr, "kontiki:", err)
	if wrong := (usageError{}); errors.As(err, &wrong) {
		os.Exit(2)
	}
	os.Exit(1)
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "kontiki",
		Short:         "A Kubernetes-compatible cluster in one program",
		SilenceErrors: true, // main prints them, in one line
		SilenceUsage:  true,
		Args:          rejectArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	groupCommands(root, groupRun, "Run a cluster:", devCommand(), labCommand(), serverCommand(), agentCommand(), installCommand(), uninstallCommand())
	groupCommands(root, groupUse, "Use it:", kubectlCommand(), historyCommand())
	groupCommands(root, groupOperate, "Look after it:", storeCommand(), tokenCommand(), certsCommand(), imageCommand(), ctrCommand())
	root.AddCommand(versionCommand())
	listFlagsByHeading(root)
	helpForGroups(root)
	return root
}

// helpForGroups lets a command that only has subcommands print its help, and refuse a subcommand that it does not have:
// cobra alone takes that for a wish for help.
func helpForGroups(parent *cobra.Command) {
	for _, cmd := range parent.Commands() {
		if !cmd.Runnable() {
			cmd.Args, cmd.RunE = rejectArgs, parent.Root().RunE
		}
		helpForGroups(cmd)
	}
}

// withoutDashes drops the -- that may stand between a place and the command to run there, as kubectl exec has it.
func withoutDashes(command []string) []string {
	if len(command) > 1 && command[0] == "--" {
		return command[1:]
	}
	return command
}

// usageError is the user's mistake on the command line or in the config file: exit code 2.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// exitCode is an error that sets the exit code, such as that of a program run in a container.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// rejectArgs is cobra.NoArgs with the right exit code.
func rejectArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usageError{fmt.Errorf("%s: unexpected %q (see %s --help)", cmd.CommandPath(), args[0], cmd.CommandPath())}
}

// exactArgs is cobra.ExactArgs with the right exit code and a message that shows the usage.
func exactArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return usageError{fmt.Errorf("usage: %s", cmd.UseLine())}
	}
}

// interruptible ends with SIGTERM or SIGINT. From then on a further SIGINT ends the process at once,
// for somebody who does not want to wait for a clean stop.
func interruptible(parent context.Context) context.Context {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() { // lives as long as the process
		<-signals
		cancel()
		for s := range signals {
			if s == syscall.SIGINT {
				fmt.Fprintln(os.Stderr, "kontiki: interrupted again: stopping at once")
				os.Exit(128 + int(syscall.SIGINT))
			}
		}
	}()
	return ctx
}
