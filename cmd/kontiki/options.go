package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	serverDataDir   = "/var/lib/kontiki"
	devDataDir      = ".kontiki"
	adminKubeconfig = "admin.kubeconfig"
)

// maxDataDirBytes leaves room for the longest socket's name in the 107 bytes that an address has (unix(7)).
const maxDataDirBytes = 107 - len("/"+criSocket)

// options are the flags of `server` and `dev`, and in part of `agent`. Each group adds its flags and checks them.
type options struct {
	dataDir     string
	bindAddress string
	network     networkOptions
	node        nodeOptions
	log         logOptions

	// Of servers alone:
	store      storeOptions
	api        apiOptions
	audit      auditOptions
	access     accessOptions
	encryption encryptionOptions
	admit      admissionOptions
	control    controllerOptions
	balancers  loadBalancerOptions
	ingress    ingressOptions
}

func (o *options) addFlags(fs *pflag.FlagSet, dataDir string) {
	o.addNodeFlags(fs, dataDir)
	fs.BoolVar(&o.node.enabled, "agent", true, "run pods on this machine")
	under("Store", fs, o.store.addFlags)
	under("API server", fs, o.api.addFlags)
	under("Secrets at rest", fs, o.encryption.addFlags)
	under("Authentication and authorization", fs, o.access.addFlags)
	under("Admission", fs, o.admit.addFlags)
	under("Audit log", fs, o.audit.addFlags)
	under("Controllers", fs, o.control.addFlags)
	under("Load balancers", fs, o.balancers.addFlags)
	under("Ingress", fs, o.ingress.addFlags)
}

// addNodeFlags adds what every machine of a cluster has, with a server or without.
func (o *options) addNodeFlags(fs *pflag.FlagSet, dataDir string) {
	fs.String("config", "", "YAML file with these flags as keys; the command line wins")
	fs.StringVar(&o.dataDir, "data-dir", dataDir, "where everything is kept")
	fs.StringVar(&o.bindAddress, "bind-address", "0.0.0.0", "address to listen on")
	o.log.addFlags(fs)
	under("The cluster's networks", fs, o.network.addFlags)
	under("This node", fs, o.node.addFlags)
}

// parse completes the options from the config file and checks them.
func parse(cmd *cobra.Command, o *options) error {
	if err := readConfigFile(cmd.Flags()); err != nil {
		return err
	}
	o.store.portGiven = cmd.Flags().Changed("client-port")
	o.network.note(cmd.Flags())
	return o.complete()
}

// complete fills in what the user left out and checks every value. It touches nothing.
func (o *options) complete() error {
	if err := o.completeNode(); err != nil {
		return err
	}
	for _, step := range []func() error{o.store.complete, o.api.complete, o.audit.complete, o.access.complete, o.encryption.complete, o.admit.complete, o.control.complete} {
		if err := step(); err != nil {
			return err
		}
	}
	if err := o.balancers.complete(&o.network); err != nil {
		return err
	}
	if err := o.ingress.complete(&o.node); err != nil {
		return err
	}
	return o.checkPorts()
}

// completeNode is complete for the flags of addNodeFlags.
func (o *options) completeNode() error {
	if o.dataDir == "" {
		return wrong("data-dir", "must not be empty")
	}
	var err error
	if o.dataDir, err = filepath.Abs(o.dataDir); err != nil {
		return wrong("data-dir", "%v", err)
	}
	if len(o.dataDir) > maxDataDirBytes {
		return wrong("data-dir", "%s has %d bytes, more than %d: the paths of the sockets in it would be too long", o.dataDir, len(o.dataDir), maxDataDirBytes)
	}
	if net.ParseIP(o.bindAddress) == nil {
		return wrong("bind-address", "%q is not an IP address", o.bindAddress)
	}
	if err := o.network.complete(); err != nil {
		return err
	}
	if o.node.ipText == "" {
		o.node.ipText = o.network.ownAddresses()
	}
	if err := o.node.complete(); err != nil {
		return err
	}
	return o.log.complete()
}

// checkPorts refuses two listeners of a server at one port.
func (o *options) checkPorts() error {
	if o.node.enabled && o.api.httpsPort == o.node.agentPort {
		return wrong("agent-port", "%d is also the --https-port", o.node.agentPort)
	}
	if port := o.store.peerPort; port != 0 && (port == o.api.httpsPort || port == o.store.clientPort || o.node.enabled && port == o.node.agentPort) {
		return wrong("peer-port", "%d is another port of this server", port)
	}
	if port := o.store.clientPort; port == o.api.httpsPort || o.node.enabled && port == o.node.agentPort {
		return wrong("client-port", "%d is also the --https-port or the --agent-port", port)
	}
	return nil
}

// wrong is the error for a flag's value: one line that names the flag.
func wrong(flag, format string, args ...any) error {
	return usageError{fmt.Errorf("--%s: %s", flag, fmt.Sprintf(format, args...))}
}

// apiOptions is where the API server listens, and under which names.
type apiOptions struct {
	httpsPort int
	tlsSANs   []string

	certificateLife time.Duration
}

func (o *apiOptions) addFlags(fs *pflag.FlagSet) {
	fs.IntVar(&o.httpsPort, "https-port", 6443, "port of the API server")
	fs.StringSliceVar(&o.tlsSANs, "tls-san", nil, "more names or addresses for the API server's certificate")
	fs.DurationVar(&o.certificateLife, "certificate-life", 365*24*time.Hour, "how long certificates are good for that are issued here; they are renewed when a third is left")
}

func (o *apiOptions) complete() error {
	for _, san := range o.tlsSANs {
		name := strings.TrimPrefix(san, "*.")
		if net.ParseIP(san) == nil && len(validation.IsDNS1123Subdomain(name)) > 0 {
			return wrong("tls-san", "%q is neither a DNS name nor an IP address", san)
		}
	}
	if o.certificateLife < 10*time.Minute {
		return wrong("certificate-life", "%s is less than 10 minutes", o.certificateLife)
	}
	return checkPort("https-port", o.httpsPort)
}

func checkPort(flag string, port int) error {
	if port < 1 || port > 65535 {
		return wrong(flag, "%d is not a port (1 to 65535)", port)
	}
	return nil
}

// nodeOptions is who this machine is, and how it runs containers.
type nodeOptions struct {
	name, ip   string // ip: the first of ips
	ips        []string
	ipText     string
	enabled    bool
	agentPort  int
	runtime    string
	runc       string
	cgroupRoot string
	cni        cniOptions

	networkPolicy bool
}

func (o *nodeOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.name, "node-name", "", "name of this node (default: the host name)")
	fs.StringVar(&o.ipText, "node-ip", "", "address under which others reach this node, or one of each IP family with a comma between (default: that of the default route)")
	fs.IntVar(&o.agentPort, "agent-port", 10250, "port of the node agent")
	fs.StringVar(&o.runtime, "node-runtime", "runc", "what runs containers: runc, simulated, or the unix:///socket of a CRI runtime")
	fs.StringVar(&o.runc, "runc", "", "runc program (default: the one beside this program, else on PATH)")
	fs.StringVar(&o.cgroupRoot, "cgroup-root", "kontiki", "cgroup to run containers in, below the root")
	fs.BoolVar(&o.networkPolicy, "network-policy", true, "enforce NetworkPolicies on the pods of this node; false leaves them to somebody else")
	o.cni.addFlags(fs)
}

func (o *nodeOptions) complete() error {
	if o.name == "" {
		host, err := os.Hostname()
		if err != nil {
			return wrong("node-name", "cannot find the host name: %v", err)
		}
		o.name = strings.ToLower(host)
	}
	if faults := validation.IsDNS1123Subdomain(o.name); len(faults) > 0 {
		return wrong("node-name", "%q: %s", o.name, faults[0])
	}
	if err := o.completeAddresses(); err != nil {
		return err
	}
	if !o.enabled {
		return nil
	}
	if err := checkPort("agent-port", o.agentPort); err != nil {
		return err
	}
	return o.completeRuntime()
}

func (o *nodeOptions) completeRuntime() error {
	socket, isSocket := strings.CutPrefix(o.runtime, "unix://")
	switch {
	case o.runtime == "simulated":
		return nil
	case isSocket && filepath.IsAbs(socket):
		return nil
	case o.runtime != "runc":
		return wrong("node-runtime", "%q is none of runc, simulated, unix:///path/of/socket", o.runtime)
	}
	if o.runc == "" {
		o.runc = besideOrOnPath("runc")
	} else if info, err := os.Stat(o.runc); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
		return wrong("runc", "%s is not a program", o.runc)
	}
	if err := o.cni.complete(); err != nil {
		return err
	}
	if o.cgroupRoot == "" || strings.HasPrefix(o.cgroupRoot, "/") || !filepath.IsLocal(o.cgroupRoot) {
		return wrong("cgroup-root", "%q is not a relative path below the cgroup root", o.cgroupRoot)
	}
	return nil
}
