package main

import (
	"context"
	"errors"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"kontiki/controllers/ingress"
)

// ingressOptions say whether this server serves Ingresses, and where.
type ingressOptions struct {
	enabled, isDefault  bool
	httpPort, httpsPort int
}

func (o *ingressOptions) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.enabled, "ingress", false, "serve the Ingresses of the class "+ingress.ClassName+" on this machine")
	fs.BoolVar(&o.isDefault, "ingress-default", false, "with --ingress: make the class that of Ingresses which name none")
	fs.IntVar(&o.httpPort, "ingress-http-port", 80, "port of --ingress for HTTP")
	fs.IntVar(&o.httpsPort, "ingress-https-port", 443, "port of --ingress for HTTPS")
}

// complete refuses what cannot be served: without an agent this machine is in no pod network.
func (o *ingressOptions) complete(node *nodeOptions) error {
	if !o.enabled {
		if o.isDefault {
			return wrong("ingress-default", "is for --ingress, which is not given")
		}
		return nil
	}
	if !node.enabled || node.runtime == "simulated" {
		return wrong("ingress", "needs the pod network of an agent on this machine")
	}
	if err := checkPort("ingress-http-port", o.httpPort); err != nil {
		return err
	}
	if err := checkPort("ingress-https-port", o.httpsPort); err != nil {
		return err
	}
	if o.httpPort == o.httpsPort {
		return wrong("ingress-https-port", "%d is also the --ingress-http-port", o.httpsPort)
	}
	return nil
}

// nodeLabels tell whom to send requests for Ingresses to: what a Node has, and what it has no more.
func (o *ingressOptions) nodeLabels() (labels map[string]string, none []string) {
	if !o.enabled {
		return nil, []string{ingress.NodeLabel}
	}
	return map[string]string{ingress.NodeLabel: "true"}, nil
}

// ingressPart serves Ingresses as client; ok is false if it is not asked for.
func (n *node) ingressPart(client *rest.Config, elect bool) (p part, ok bool, err error) {
	o := n.options.ingress
	if !o.enabled {
		return part{}, false, nil
	}
	plain, err := listen(n.options.bindAddress, o.httpPort, "ingress-http-port")
	if err != nil {
		return part{}, false, err
	}
	secure, err := listen(n.options.bindAddress, o.httpsPort, "ingress-https-port")
	if err != nil {
		return part{}, false, errors.Join(err, plain.Close())
	}
	return part{"ingress", func(ctx context.Context) error {
		return ingress.Run(ctx, ingress.Config{
			REST: client, HTTP: plain, HTTPS: secure, Default: o.isDefault, LeaderElect: elect, Identity: n.options.node.name,
			Log: n.log.With("component", "ingress"),
		})
	}}, true, nil
}
