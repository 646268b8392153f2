package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"kontiki/internal/lab"
)

// addHelpers adds what the lab itself runs beside its machines; nobody types it.
func (f *labFlags) addHelpers(cmd *cobra.Command) {
	cmd.AddCommand(f.frontCommand(), relayCommand())
}

// frontCommand carries connections from outside to servers that are ready.
func (f *labFlags) frontCommand() *cobra.Command {
	return &cobra.Command{Use: "front", Short: "Carry connections to the lab's servers", Hidden: true, Args: rejectArgs,
		RunE: f.withLab(func(cmd *cobra.Command, l *lab.Lab, _ []string) error {
			return unlessEnded(cmd.Context(), l.ServeFront(cmd.Context(), cmd.OutOrStdout(), helperLog()))
		})}
}

// relayCommand delays what a machine sends.
func relayCommand() *cobra.Command {
	var machine, bridge string
	var delay time.Duration
	cmd := &cobra.Command{Use: "relay", Short: "Carry frames between two interfaces, with a delay", Hidden: true, Args: rejectArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return unlessEnded(cmd.Context(), lab.Relay(cmd.Context(), machine, bridge, delay, cmd.OutOrStdout(), helperLog()))
		}}
	cmd.Flags().StringVar(&machine, "machine-end", "", "interface whose frames wait")
	cmd.Flags().StringVar(&bridge, "bridge-end", "", "interface whose frames do not")
	cmd.Flags().DurationVar(&delay, "delay", 0, "how long they wait")
	return cmd
}

func helperLog() *slog.Logger { return slog.New(slog.NewTextHandler(os.Stderr, nil)) }

// unlessEnded drops the error of a helper that was told to end.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
