package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"kontiki/internal/apiclient"
	"kontiki/internal/lab"
	"kontiki/internal/lab/ledger"
)

// writeFlags are those of `lab write`.
type writeFlags struct {
	through    string
	period     time.Duration
	count      int
	every      time.Duration
	untilError bool
	watch      bool
}

func (f *labFlags) writeCommand() *cobra.Command {
	w := &writeFlags{}
	cmd := &cobra.Command{Use: "write NAME", Short: "Write ConfigMaps NAME-1, NAME-2 … while others break the lab, and check that none is lost",
		Long: `Write ConfigMaps NAME-1, NAME-2 … while others break the lab, and check that none is lost.

A write that fails is tried again until it is acknowledged; in the end every acknowledged one must be there. With --watch a watch
on each server must have told each exactly once, going on at another server when its own is gone. They are labelled ` + ledger.Label + `=NAME.`,
		Args: exactArgs(1),
		RunE: f.withLab(func(cmd *cobra.Command, l *lab.Lab, args []string) error {
			return w.run(cmd.Context(), l, args[0], cmd.OutOrStdout())
		})}
	cmd.Flags().StringVar(&w.through, "through", "", "the server to write through (default: any that is ready)")
	cmd.Flags().DurationVar(&w.period, "for", 5*time.Second, "how long to write")
	cmd.Flags().IntVar(&w.count, "count", 0, "how many to write, instead of --for")
	cmd.Flags().DurationVar(&w.every, "every", 20*time.Millisecond, "how long from the begin of one write to the next")
	cmd.Flags().BoolVar(&w.untilError, "until-error", false, "begin writes without waiting for the last one, end with the first error, and print those that were not acknowledged")
	cmd.Flags().BoolVar(&w.watch, "watch", false, "watch through each server, too")
	return cmd
}

// writePatience is how long a write is tried after the end.
const writePatience = 30 * time.Second

func (f *writeFlags) run(ctx context.Context, l *lab.Lab, name string, out io.Writer) error {
	if f.period <= 0 || f.count < 0 || f.every < 0 {
		return usageError{errors.New("kontiki lab write: --for must be more than 0, --count and --every not less")}
	}
	client, err := labClient(l, f.through)
	if err != nil {
		return err
	}
	w := &ledger.Writer{Name: name, Namespace: "default", Client: client, Every: f.every, Timeout: 5 * time.Second}
	if f.untilError {
		w.Timeout = 2 * time.Second
		w.RunUntilError(ctx)
		fmt.Fprintln(out, strings.Join(w.Report().Unknown, " "))
		return nil
	}
	watchers, err := f.watchers(ctx, l, w)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, f.period)
	defer cancel()
	if f.count > 0 {
		err = w.Count(ctx, f.count, 0)
	} else {
		err = w.Run(limited, writePatience)
	}
	if errors.Is(err, ledger.ErrTaken) {
		return fmt.Errorf("%w: take another name, or kubectl delete configmap -l %s=%s", err, ledger.Label, name)
	}
	if err != nil {
		return err
	}
	if err := w.Check(ctx); err != nil {
		return err
	}
	report := w.Report()
	fmt.Fprintf(out, "%d writes were acknowledged, and all are there; the longest took %s\n", report.Acknowledged, report.Longest.Round(time.Millisecond))
	return reportWatches(ctx, w, watchers, out)
}

// namedWatcher is a watch that begins at a server.
type namedWatcher struct {
	server string
	*ledger.Watcher
}

// watchers start a watch at each server, which goes on at the next ones.
func (f *writeFlags) watchers(ctx context.Context, l *lab.Lab, w *ledger.Writer) (all []namedWatcher, err error) {
	if !f.watch {
		return nil, nil
	}
	var names []string
	var clients []kubernetes.Interface
	for _, h := range l.Hosts {
		if h.Server {
			client, err := labClient(l, h.Name)
			if err != nil {
				return nil, err
			}
			names, clients = append(names, h.Name), append(clients, client)
		}
	}
	for i, name := range names {
		watcher := &ledger.Watcher{Servers: append(clients[i:len(clients):len(clients)], clients[:i]...)}
		if err := watcher.Start(ctx, w); err != nil {
			return nil, err
		}
		all = append(all, namedWatcher{name, watcher})
	}
	return all, nil
}

func reportWatches(ctx context.Context, w *ledger.Writer, watchers []namedWatcher, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, writePatience)
	defer cancel()
	for _, watcher := range watchers {
		breaks, err := watcher.Await(ctx, w)
		if err != nil {
			return fmt.Errorf("the watch at %s: %w", watcher.server, err)
		}
		how := "never broke off"
		if breaks > 0 {
			how = fmt.Sprintf("broke off %d times and went on at another server", breaks)
		}
		fmt.Fprintf(out, "the watch at %s %s: every write was told, none twice, all in order\n", watcher.server, how)
	}
	return nil
}

// labClient calls a machine's API server, "" any.
func labClient(l *lab.Lab, machine string) (kubernetes.Interface, error) {
	config, err := l.Config(machine)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(apiclient.Config(config, "lab/kontiki"))
}
