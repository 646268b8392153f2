package main

import (
	"time"

	"github.com/spf13/pflag"
)

// controllerOptions is how the controllers judge.
type controllerOptions struct{ nodeGrace time.Duration }

// minNodeGrace lets a node miss nothing: it renews its Lease every 10 s.
const minNodeGrace = 15 * time.Second

func (o *controllerOptions) addFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&o.nodeGrace, "node-monitor-grace-period", 40*time.Second, "how long a node may be silent before it counts as lost, the same on all servers")
}

func (o *controllerOptions) complete() error {
	if o.nodeGrace < minNodeGrace {
		return wrong("node-monitor-grace-period", "%s is less than %s: nodes report every 10 s", o.nodeGrace, minNodeGrace)
	}
	return nil
}
