package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kontiki/internal/apiclient"
	"kontiki/internal/bootstraptoken"
	"kontiki/internal/control"
	"kontiki/internal/memory"
	"kontiki/internal/pki"
	"kontiki/nodeagent/certificates"
)

// agentDataDir is not the server's, so that both can run on one machine.
const agentDataDir = "/var/lib/kontiki-agent"

// agentOptions are the flags of `agent`: those of every node, and how it finds its server.
type agentOptions struct {
	options
	server, pkiDir, token string
	join                  *bootstraptoken.Join // the token; nil without
}

// agentCommand runs a node agent in a process of its own.
func agentCommand() *cobra.Command {
	o := &agentOptions{}
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Run a worker node",
		Long: `Run a worker node. "kontiki token create" on a server prints the command with which it joins:

  kontiki agent --server https://10.0.0.1:6443 --token K10…::…

The token is needed once. The node keeps its certificates in the directory pki/ of its data directory
and renews them by itself. On the server's own machine --pki-dir does instead of a token.

SIGTERM or SIGINT stops the agent and leaves the containers running.`,
		Args: rejectArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := readConfigFile(cmd.Flags()); err != nil {
				return err
			}
			o.network.note(cmd.Flags())
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
	o.addNodeFlags(fs, agentDataDir)
	fs.StringVar(&o.server, "server", "https://127.0.0.1:6443", "URL of an API server; the others are learned from it")
	fs.StringVar(&o.token, "token", "", "token to join with (kontiki token create); not needed any more once joined")
	fs.StringVar(&o.pkiDir, "pki-dir", "", "the server's pki directory, on its own machine: the node's certificates are issued from it, without a token")
}

func (o *agentOptions) complete() error {
	o.node.enabled = true
	if err := o.completeNode(); err != nil {
		return err
	}
	if u, err := url.Parse(o.server); err != nil || u.Scheme != "https" || u.Host == "" {
		return wrong("server", "%q is not a URL such as https://10.0.0.1:6443", o.server)
	}
	if o.pkiDir != "" {
		if o.token != "" {
			return wrong("token", "is not needed with --pki-dir")
		}
		if _, err := os.Stat(filepath.Join(o.pkiDir, "ca.key")); err != nil {
			return wrong("pki-dir", "%v", err)
		}
	}
	var err error
	o.join, err = parseToken(o.token)
	return err
}

// parseToken reads the flag --token, which may be empty.
func parseToken(text string) (*bootstraptoken.Join, error) {
	if text == "" {
		return nil, nil
	}
	token, err := bootstraptoken.ParseJoin(text)
	if err != nil {
		return nil, wrong("token", "%v", err) // without the text: it is secret
	}
	return &token, nil
}

func runAgent(ctx context.Context, o *agentOptions) error {
	log := o.log.logger(os.Stderr)
	h := &agentHost{process: newProcess(ctx), options: &o.options, log: log, control: &control.Server{}}
	saveMemory(h.process, memory.MinLeeway)
	if err := h.open(ctx, o); err != nil {
		return unlessStopped(ctx, joinStop(err, h.process), log)
	}
	return serve(ctx, h.process, log)
}

func (h *agentHost) open(ctx context.Context, o *agentOptions) (err error) {
	if h.dir, err = openDataDir(o.dataDir); err != nil {
		return err
	}
	h.onStop(h.dir.close)
	h.servers = h.knownServers(apiclient.ServersConfig{Given: []string{o.server}})
	credentials, err := h.credentials(ctx, o)
	if err != nil {
		return err
	}
	h.start(part{"list of API servers", func(ctx context.Context) error { return h.servers.Run(ctx, credentials.client) }})
	if err := h.learnCluster(ctx, credentials.client); err != nil {
		return err
	}
	if err := h.startAgent(credentials); err != nil {
		return err
	}
	h.control.ImportImages = h.importImages
	h.start(part{"control socket", func(ctx context.Context) error { return h.control.Serve(ctx, h.dir.join(controlSocket)) }})
	return nil
}

// credentials are issued from the server's directory, or asked of the server.
func (h *agentHost) credentials(ctx context.Context, o *agentOptions) (credentials nodeCredentials, err error) {
	if o.pkiDir == "" {
		return h.joinedWith(ctx, o)
	}
	if h.pki, err = pki.Open(o.pkiDir, pki.Options{}); err != nil {
		return credentials, err
	}
	if credentials, err = h.issuedHere(); err != nil {
		return credentials, err
	}
	h.start(part{"certificates", func(ctx context.Context) error { h.pki.Keep(ctx, h.log, nil); return ctx.Err() }})
	return credentials, nil
}

func (h *agentHost) joinedWith(ctx context.Context, o *agentOptions) (nodeCredentials, error) {
	m, err := certificates.Open(ctx, certificates.Config{
		Dir: h.dir.join("pki"), Servers: h.servers, NodeName: o.node.name, NodeIPs: o.node.netIPs(),
		Token: o.join, Log: h.log.With("component", "certificates"),
	})
	if err != nil {
		return nodeCredentials{}, err
	}
	h.start(part{"certificates", m.Keep})
	return nodeCredentials{client: m.Client, serving: m.Serving()}, nil
}
