package main

import (
	"context"
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
		return err
	}
	log.Info("ready", "after", time.Since(began).Round(time.Millisecond), "version", version)
	notify("READY=1")
	failed := n.wait(ctx)
	notify("STOPPING=1")
	return stopProcess(n.process, failed, log)
}

// stopProcess stops what runs and returns the failure that ended it, or else one of stopping itself.
func stopProcess(p *process, failed error, log *slog.Logger) error {
	began := time.Now()
	stopping := p.stop()
	log.Info("stopped", "after", time.Since(began).Round(time.Millisecond))
	if failed != nil {
		return failed
	}
	return stopping
}
