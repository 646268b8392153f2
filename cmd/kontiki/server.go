package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"kontiki/internal/hostcheck"
)

func serverCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Run a control-plane node: store, API server, controllers, scheduler, and a node agent",
		Long: `Run a control-plane node: store, API server, controllers, scheduler, and a node agent.

SIGTERM or SIGINT stops it cleanly and leaves the containers running; a second SIGINT stops at once.`,
		Args: rejectArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := parse(cmd, o); err != nil {
				return err
			}
			if lacking := o.node.lacking(); lacking != "" {
				return fmt.Errorf("containers cannot run here (%s): use --node-runtime simulated or --agent=false", lacking)
			}
			return runServer(cmd.Context(), o)
		},
	}
	o.addFlags(cmd.Flags(), serverDataDir)
	under("Store", cmd.Flags(), o.store.addJoinFlags)
	return cmd
}

// lacking says what this machine lacks for the chosen runtime; empty if nothing.
func (o *nodeOptions) lacking() string {
	if !o.enabled || o.runtime != "runc" {
		return ""
	}
	return hostcheck.Lacking(o.runc, o.cgroupRoot)
}

func runServer(ctx context.Context, o *options) error {
	log := o.log.logger(os.Stderr)
	began := time.Now()
	n, err := startNode(ctx, o, log)
	if err != nil {
		return unlessStopped(ctx, err, log)
	}
	log.Info("ready", "after", time.Since(began).Round(time.Millisecond), "version", version)
	return serve(ctx, n.process, log)
}

// unlessStopped drops the error of a start that was given up because ctx ended: that is a clean stop, too.
func unlessStopped(ctx context.Context, err error, log *slog.Logger) error {
	if ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	log.Info("stopped before the node was up")
	return nil
}

// serve lets a started process run until ctx ends or a part of it fails, and stops it. It returns the failure that
// ended it, or else one of stopping itself.
func serve(ctx context.Context, p *process, log *slog.Logger) error {
	notify("READY=1")
	failed := p.wait(ctx)
	notify("STOPPING=1")
	began := time.Now()
	stopping := p.stop()
	log.Info("stopped", "after", time.Since(began).Round(time.Millisecond))
	return cmp.Or(failed, stopping)
}
