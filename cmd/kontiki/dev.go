package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
)

func devCommand() *cobra.Command {
	o, keepPods := &options{}, false
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run one node in the foreground, with its data in ./.kontiki and no set-up",
		Long: `Run one node in the foreground, with its data in ./.kontiki and no set-up.

Where this machine cannot run containers, dev says in one line what is lacking and simulates them:
pods exist as status only, everything else is real. SIGTERM or SIGINT stops the node and, unless
--keep-pods is given, its containers; the objects stay, and their containers are started again by
the next dev. A second SIGINT stops at once.`,
		Args: rejectArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := parse(cmd, o); err != nil {
				return err
			}
			if lacking := o.node.lacking(); lacking != "" {
				if cmd.Flags().Changed("node-runtime") {
					return fmt.Errorf("containers cannot run here (%s)", lacking)
				}
				fmt.Printf("Containers cannot run here (%s): pods are simulated.\n", lacking)
				o.node.runtime = "simulated"
			}
			return runDev(cmd.Context(), o, keepPods)
		},
	}
	o.addFlags(cmd.Flags(), devDataDir)
	alone := cmd.Flags().Lookup("peer-port") // unless somebody asks for company
	alone.DefValue, o.store.peerPort = "0", 0
	cmd.Flags().BoolVar(&keepPods, "keep-pods", false, "leave the containers running when dev stops, as server does")
	return cmd
}

func runDev(ctx context.Context, o *options, keepPods bool) error {
	log := o.log.logger(os.Stderr)
	began := time.Now()
	n, err := startNode(ctx, o, log)
	if err != nil {
		return unlessStopped(ctx, err, log)
	}
	fmt.Printf("Kontiki %s: node %s at https://%s:%d is up after %d ms; data in %s\n", version, o.node.name, o.node.ip,
		o.api.httpsPort, time.Since(began).Milliseconds(), o.dataDir)
	fmt.Printf("  kubectl --kubeconfig %s get nodes\n", filepath.Join(o.dataDir, adminKubeconfig))
	n.stopContainers = !keepPods
	return serve(ctx, n.process, log)
}
