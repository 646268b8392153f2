package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/containerd/console"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kontiki/nodeagent/logs"
	"kontiki/nodeagent/podspec"
)

func ctrCommand() *cobra.Command {
	l := &local{}
	cmd := &cobra.Command{Use: "ctr", Short: "Look after the containers of this node", Args: rejectArgs}
	l.addRuntimeFlags(cmd)
	cmd.AddCommand(ctrPS(l), ctrLogs(l), ctrExec(l))
	return cmd
}

// containers calls f with the node's runtime. gRPC's wrapping is taken off its errors.
func (l *local) containers(f func(runtimeapi.RuntimeServiceClient) error) error {
	conn, err := l.runtime()
	if err != nil {
		return err
	}
	defer conn.Close()
	return plain(f(runtimeapi.NewRuntimeServiceClient(conn)))
}

func ctrPS(l *local) *cobra.Command {
	all := false
	cmd := &cobra.Command{Use: "ps", Short: "List the containers", Args: rejectArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return l.containers(func(c runtimeapi.RuntimeServiceClient) error { return printContainers(cmd.Context(), c, all) })
		}}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "also those that do not run")
	return cmd
}

func printContainers(ctx context.Context, c runtimeapi.RuntimeServiceClient, all bool) error {
	request := &runtimeapi.ListContainersRequest{}
	if !all {
		request.Filter = &runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}}
	}
	reply, err := c.ListContainers(ctx, request)
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 8, 3, ' ', 0)
	fmt.Fprintln(out, "CONTAINER\tNAMESPACE\tPOD\tNAME\tATTEMPT\tSTATE\tCREATED")
	for _, ctr := range reply.Containers {
		state := strings.ToLower(strings.TrimPrefix(ctr.State.String(), "CONTAINER_"))
		age := time.Since(time.Unix(0, ctr.CreatedAt)).Round(time.Second)
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%d\t%s\t%s ago\n", shortID(ctr.Id), ctr.Labels[podspec.LabelPodNamespace],
			ctr.Labels[podspec.LabelPodName], ctr.Metadata.GetName(), ctr.Metadata.GetAttempt(), state, age)
	}
	return out.Flush()
}

func ctrLogs(l *local) *cobra.Command {
	options, tail := logs.Options{}, int64(-1)
	cmd := &cobra.Command{Use: "logs CONTAINER", Short: "Print a container's log", Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if tail >= 0 {
				options.TailLines = &tail
			}
			return l.containers(func(c runtimeapi.RuntimeServiceClient) error {
				reply, err := c.ContainerStatus(cmd.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: args[0]})
				if err != nil {
					return err
				}
				return logs.Read(cmd.Context(), reply.Status.LogPath, options, cmd.OutOrStdout(), func() {})
			})
		}}
	cmd.Flags().BoolVarP(&options.Follow, "follow", "f", false, "wait for more")
	cmd.Flags().Int64Var(&tail, "tail", -1, "only the last lines")
	return cmd
}

func ctrExec(l *local) *cobra.Command {
	request := &runtimeapi.ExecRequest{Stdout: true}
	cmd := &cobra.Command{Use: "exec CONTAINER COMMAND [ARG…]", Short: "Run a command in a container",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usageError{fmt.Errorf("%s takes a container and a command", cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			request.ContainerId, request.Cmd = args[0], withoutDashes(args[1:])
			request.Stderr = !request.Tty // a terminal has one output
			return l.containers(func(c runtimeapi.RuntimeServiceClient) error { return execInContainer(cmd.Context(), c, request) })
		}}
	cmd.Flags().BoolVarP(&request.Stdin, "stdin", "i", false, "pass standard input on")
	cmd.Flags().BoolVarP(&request.Tty, "tty", "t", false, "give the command a terminal")
	cmd.Flags().SetInterspersed(false) // flags after the container are the command's
	return cmd
}

func execInContainer(ctx context.Context, c runtimeapi.RuntimeServiceClient, request *runtimeapi.ExecRequest) error {
	reply, err := c.Exec(ctx, request)
	if err != nil {
		return err
	}
	address, err := url.Parse(reply.Url)
	if err != nil {
		return err
	}
	executor, err := remotecommand.NewSPDYExecutor(&rest.Config{Host: address.Scheme + "://" + address.Host}, "POST", address)
	if err != nil {
		return err
	}
	streams := remotecommand.StreamOptions{Stdout: os.Stdout, Tty: request.Tty}
	if request.Stdin {
		streams.Stdin = os.Stdin
	}
	if request.Stderr {
		streams.Stderr = os.Stderr
	}
	if request.Tty {
		restore, err := rawTerminal()
		if err != nil {
			return err
		}
		defer restore()
	}
	err = executor.StreamWithContext(ctx, streams)
	if exit, ok := err.(utilexec.CodeExitError); ok {
		return exitCode(exit.Code)
	}
	return err
}

// rawTerminal hands every key to the container until restore is called.
func rawTerminal() (restore func(), err error) {
	terminal, err := console.ConsoleFromFile(os.Stdin)
	if err != nil {
		return nil, fmt.Errorf("--tty needs a terminal on standard input: %w", err)
	}
	return func() { _ = terminal.Reset() }, terminal.SetRaw()
}
