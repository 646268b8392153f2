package main

import (
	"os"

	"github.com/spf13/pflag"
)

// cniOptions say who configures the pod network.
type cniOptions struct {
	mode, binDir, confDir string
}

// Where network add-ons put their configuration and plugins, on every node that has no say in it.
const (
	foreignConfDir = "/etc/cni/net.d"
	foreignBinDir  = "/opt/cni/bin"
)

func (o *cniOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.mode, "cni", "default", "who configures the pod network: default (a bridge and routes to the other nodes), or none: an add-on such as Calico or Flannel; the node is not ready until it has done so")
	fs.StringVar(&o.binDir, "cni-bin-dir", "", "directory of CNI plugins (default: cni/ beside this program; with --cni none "+foreignBinDir+" before it)")
	fs.StringVar(&o.confDir, "cni-conf-dir", "", "directory of CNI configurations, of which the first by name counts (default: one below --data-dir; with --cni none "+foreignConfDir+")")
}

func (o *cniOptions) complete() error {
	if o.mode != "default" && o.mode != "none" {
		return wrong("cni", "%q is neither default nor none", o.mode)
	}
	if o.binDir != "" {
		if info, err := os.Stat(o.binDir); err != nil || !info.IsDir() {
			return wrong("cni-bin-dir", "%s is not a directory", o.binDir)
		}
	}
	if o.confDir == "" && o.foreign() {
		o.confDir = foreignConfDir
	}
	return nil
}

func (o *cniOptions) foreign() bool { return o.mode == "none" }

// binDirs are where plugins are looked for, in this order.
func (o *cniOptions) binDirs() []string {
	switch {
	case o.binDir != "":
		return []string{o.binDir}
	case o.foreign():
		return []string{foreignBinDir, beside("cni")}
	}
	return []string{beside("cni")}
}
