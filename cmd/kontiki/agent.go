package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kontiki/internal/control"
	"kontiki/internal/memory"
	"kontiki/internal/pki"
)

// agentDataDir is not the server's, so that both can run on one machine.
const agentDataDir = "/var/lib/kontiki-agent"

// agentOptions are the flags of `agent` beyond those of every node.
type agentOptions struct {
	options
	server, pkiDir string
}

// agentCommand runs a node agent in a process of its own.
//
// Not yet: joining with a token (`--server URL --token T`), by which the agent would get its
// certificates from the server. Until then it issues them itself from the server's pki directory,
// so it runs on the server's machine, beside `server --agent=false`.
func agentCommand() *cobra.Command {
	o := &agentOptions{}
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Run a worker node on the server's machine (joining from another: not yet)",
		Long: `Run a node agent in a process of its own, beside "kontiki server --agent=false" on the same machine.

Joining from another machine with a token does not work yet: the agent's certificates are issued
from the server's pki directory, which has to be readable. SIGTERM or SIGINT stops the agent and
leaves the containers running.`,
		Args: rejectArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := readConfigFile(cmd.Flags()); err != nil {
				return err
			}
			if err := o.complete(); err != nil {
				return err
			}
			if lacking := o.node.lacking(); lacking != "" {
				return fmt.Errorf("containers cannot run here (%s): use --node-runtime simulated", lacking)
			}
			return runAgent(cmd.Context(), o)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *agentOptions) addFlags(fs *pflag.FlagSet) {
	o.options.addFlags(fs, agentDataDir)
	fs.StringVar(&o.server, "server", "https://127.0.0.1:6443", "URL of the API server")
	fs.StringVar(&o.pkiDir, "pki-dir", filepath.Join(serverDataDir, "pki"), "the server's pki directory")
	for _, serverOnly := range []string{"agent", "https-port", "tls-san", "cluster-cidr", "service-cidr", "client-port", "history-retention",
		"store-endpoints", "store-ca", "store-cert", "store-key"} {
		_ = fs.MarkHidden(serverOnly)
	}
}

func (o *agentOptions) complete() error {
	o.node.enabled = true
	if err := o.options.complete(); err != nil {
		return err
	}
	if u, err := url.Parse(o.server); err != nil || u.Scheme != "https" || u.Host == "" {
		return wrong("server", "%q is not a URL such as https://10.0.0.1:6443", o.server)
	}
	if _, err := os.Stat(filepath.Join(o.pkiDir, "ca.key")); err != nil {
		return wrong("pki-dir", "%v", err)
	}
	return nil
}

func runAgent(ctx context.Context, o *agentOptions) error {
	log := o.log.logger(os.Stderr)
	h := &agentHost{process: newProcess(ctx), options: &o.options, log: log, control: &control.Server{}}
	saveMemory(h.process, memory.MinLeeway)
	if err := h.open(o); err != nil {
		return joinStop(err, h.process)
	}
	return serve(ctx, h.process, log)
}

func (h *agentHost) open(o *agentOptions) (err error) {
	if h.dir, err = openDataDir(o.dataDir); err != nil {
		return err
	}
	h.onStop(h.dir.close)
	if h.pki, err = pki.Open(o.pkiDir, pki.Options{}); err != nil {
		return err
	}
	credentials, err := h.issuedHere()
	if err != nil {
		return err
	}
	h.start(part{"certificates", func(ctx context.Context) error { h.pki.Keep(ctx, h.log, nil); return ctx.Err() }})
	if err := h.startAgent(credentials, o.server); err != nil {
		return err
	}
	h.control.ImportImages = h.importImages
	h.start(part{"control socket", func(ctx context.Context) error { return h.control.Serve(ctx, h.dir.join(controlSocket)) }})
	return nil
}
