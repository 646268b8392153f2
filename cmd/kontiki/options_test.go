package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// parseArgs reads flags as `server` does.
func parseArgs(args ...string) (*options, error) {
	o := &options{}
	cmd := &cobra.Command{Use: "server", Args: rejectArgs, SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return parse(cmd, o) }}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	o.addFlags(cmd.Flags(), serverDataDir)
	o.store.addJoinFlags(cmd.Flags())
	cmd.SetArgs(args)
	cmd.SetOut(io.Discard)
	return o, cmd.Execute()
}

func TestWrongValuesAreOneLine(t *testing.T) {
	cases := []struct{ args, message string }{
		{"--https-port 70000", "--https-port: 70000 is not a port (1 to 65535)"},
		{"--https-port 0", "--https-port: 0 is not a port (1 to 65535)"},
		{"--https-port many", `invalid argument "many" for "--https-port" flag`},
		{"--agent-port -1", "--agent-port: -1 is not a port"},
		{"--agent-port 6443", "--agent-port: 6443 is also the --https-port"},
		{"--bind-address nowhere", `--bind-address: "nowhere" is not an IP address`},
		{"--node-ip 300.1.1.1", `--node-ip: "300.1.1.1" is not an address of a machine`},
		{"--node-ip 0.0.0.0", `--node-ip: "0.0.0.0" is not an address of a machine`},
		{"--node-name Big_Node", `--node-name: "Big_Node": `},
		{"--node-ip 10.0.0.1,10.0.0.2", "--node-ip: 10.0.0.1,10.0.0.2 has two addresses of one IP family"},
		{"--cluster-cidr 10.244.0.0", `--cluster-cidr: "10.244.0.0" is not a network such as 10.0.0.0/16`},
		{"--cluster-cidr 10.244.0.0/16,10.245.0.0/16", `--cluster-cidr: "10.244.0.0/16,10.245.0.0/16" is not an IPv4 network, or an IPv4 and an IPv6 network`},
		{"--cluster-cidr 10.244.0.0/16,fd00::/72", "--cluster-cidr: fd00::/72: the prefix must be from /32 to /64"},
		{"--cluster-cidr 10.244.0.0/16,fd00::/48", "--service-cidr: 10.96.0.0/16 has not the IP families of --cluster-cidr 10.244.0.0/16,fd00::/48"},
		{"--load-balancer-cidr 192.0.2.1", `--load-balancer-cidr: "192.0.2.1" is not a network such as`},
		{"--load-balancer-cidr 192.0.2.64/28,10.96.7.0/24", "--load-balancer-cidr: 10.96.7.0/24 overlaps the addresses of pods or Services, 10.96.0.0/16"},
		{"--ingress --agent=false", "--ingress: needs the pod network of an agent on this machine"},
		{"--ingress-default", "--ingress-default: is for --ingress, which is not given"},
		{"--cni flannel", `--cni: "flannel" is neither default nor none`},
		{"--cluster-cidr 10.244.1.0/16", "--cluster-cidr: 10.244.1.0/16 has host bits set: did you mean 10.244.0.0/16?"},
		{"--cluster-cidr 10.244.0.0/25", "--cluster-cidr: 10.244.0.0/25: the prefix must be from /8 to /24"},
		{"--service-cidr fd00::/64", `--service-cidr: "fd00::/64" is not an IPv4 network`},
		{"--service-cidr 10.0.0.0/8", "--service-cidr: 10.0.0.0/8 overlaps --cluster-cidr 10.244.0.0/16"},
		{"--cluster-domain .local", `--cluster-domain: ".local": `},
		{"--tls-san a_b", `--tls-san: "a_b" is neither a DNS name nor an IP address`},
		{"--node-runtime docker", `--node-runtime: "docker" is none of runc, simulated, unix:///path/of/socket`},
		{"--node-runtime unix://relative.sock", `--node-runtime: "unix://relative.sock" is none of`},
		{"--runc /does/not/exist", "--runc: /does/not/exist is not a program"},
		{"--cni-bin-dir /does/not/exist", "--cni-bin-dir: /does/not/exist is not a directory"},
		{"--cgroup-root /abs", `--cgroup-root: "/abs" is not a relative path`},
		{"--cgroup-root ../up", `--cgroup-root: "../up" is not a relative path`},
		{"--node-monitor-grace-period 5s", "--node-monitor-grace-period: 5s is less than 15s: nodes report every 10 s"},
		{"--raft-log paper", `--raft-log: "paper" is neither wal nor boltdb`},
		{"--snapshot-count 0", "--snapshot-count: must be at least 1"},
		{"--snapshot-interval 10ms", "--snapshot-interval: 10ms is less than a second"},
		{"--peer-port 6443", "--peer-port: 6443 is another port of this server"},
		{"--token K10x", "--token: is for --join, which is not given"},
		{"--join https://a --token abcdef.0123456789abcdef", "--token: the token does not name the cluster"},
		{"--join https://a --token secret", "--token: it must begin with K10"},
		{"--certificate-life 1m", "--certificate-life: 1m0s is less than 10 minutes"},
		{"--join 10.0.0.1:2380", `--join: "10.0.0.1:2380" is not a URL such as https://10.0.0.1:6443`},
		{"--join https://a --peer-port 0", "--join: the other members must reach this one: --peer-port is 0"},
		{"--join https://a --store-endpoints https://e:2379", "--join: no member runs here with --store-endpoints"},
		{"--enable-admission-plugins Magic", `--enable-admission-plugins: there is no admission plugin "Magic", only AlwaysPullImages, `},
		{"--disable-admission-plugins ResourceQuota,Magic", `--disable-admission-plugins: there is no admission plugin "Magic"`},
		{"--disable-admission-plugins Priority --enable-admission-plugins Priority", `--disable-admission-plugins: admission plugin "Priority" is enabled and disabled`},
		{"--admission-control-config-file /does/not/exist", "--admission-control-config-file: open /does/not/exist: no such file or directory"},
		{"--audit-policy-file /does/not/exist", "--audit-policy-file: says what to record, and neither"},
		{"--audit-log-path - --audit-policy-file /does/not/exist", "--audit-policy-file: open /does/not/exist"},
		{"--audit-log-path - --audit-policy-file options.go", "--audit-policy-file: options.go: invalid audit policy: "},
		{"--audit-log-mode soon", `--audit-log-mode: "soon" is none of batch, blocking and blocking-strict`},
		{"--audit-log-maxsize=-1", "--audit-log-maxsize: -1 is less than 0"},
		{"--audit-webhook-batch-buffer-size 0", "--audit-webhook-batch-buffer-size: must be at least 1"},
		{"--audit-webhook-config-file /does/not/exist", "--audit-webhook-config-file: "},
		{"--encryption-provider-config /does/not/exist", "--encryption-provider-config: open /does/not/exist"},
		{"--encryption-provider-config options.go", "--encryption-provider-config: options.go: invalid encryption configuration: "},
		{"--encryption-provider-config-automatic-reload", "--encryption-provider-config-automatic-reload: needs --encryption-provider-config"},
		{"--history-retention 1s", "--history-retention: 1s is less than a minute"},
		{"--log-level loud", `--log-level: "loud" is none of debug, info, warn, error`},
		{"--log-format xml", `--log-format: "xml" is neither text nor json`},
		{"--store-endpoints 10.0.0.1:2379", `--store-endpoints: "10.0.0.1:2379" is not the URL of an etcd`},
		{"--store-endpoints http://10.0.0.1:2379", "--store-endpoints: http://10.0.0.1:2379 is not encrypted: http is for this machine only"},
		{"--store-endpoints http://127.0.0.1:2379,https://127.0.0.1:2380", "--store-endpoints: http and https are mixed"},
		{"--store-ca /x", "--store-ca: is for --store-endpoints, which is not given"},
		{"--store-endpoints https://e:2379 --store-ca /does/not/exist", "--store-ca: open /does/not/exist"},
		{"--store-endpoints https://e:2379 --store-ca options.go", "--store-ca: options.go holds no certificate"},
		{"--store-endpoints https://e:2379 --store-cert options.go", "--store-key: must be given with --store-cert"},
		{"--store-endpoints https://e:2379 --store-cert options.go --store-key options.go", "--store-cert: tls: failed to find any PEM data"},
		{"--data-dir /" + strings.Repeat("long/", 20), "has 100 bytes, more than 92: the paths of the sockets"},
		{"--data-dir=", "--data-dir: must not be empty"},
		{"--nonsense 1", "unknown flag: --nonsense"},
		{"extra", `server: unexpected "extra"`},
		{"--config /does/not/exist", "--config: open /does/not/exist: no such file or directory"},
	}
	for _, c := range cases {
		t.Run(c.args, func(t *testing.T) {
			_, err := parseArgs(strings.Fields(c.args)...)
			require.ErrorContains(t, err, c.message)
			require.NotContains(t, err.Error(), "\n")
			var usage usageError
			require.ErrorAs(t, err, &usage, "exit code 2")
		})
	}
}

func TestDefaultsAreValid(t *testing.T) {
	o, err := parseArgs("--node-name", "n")
	require.NoError(t, err)
	require.Equal(t, serverDataDir, o.dataDir)
	require.Equal(t, "10.96.0.1", o.network.serviceIP().String())
	require.NotEmpty(t, o.node.ip)
	require.Len(t, o.node.ips, 1)
	_, err = parseArgs("--agent=false", "--agent-port", "6443")
	require.NoError(t, err, "without an agent its flags do not matter")
}

func TestDualStack(t *testing.T) {
	o, err := parseArgs("--cluster-cidr", "10.244.0.0/16,fd00:244::/48", "--service-cidr", "10.96.0.0/16,fd00:96::/112", "--node-ip", "192.0.2.1,2001:db8::1")
	require.NoError(t, err)
	require.Equal(t, "10.96.0.1", o.network.serviceIP().String())
	require.Equal(t, "[10.96.0.10 fd00:96::a]", fmt.Sprint(o.network.dnsIPs()))
	require.Equal(t, "fd00:244::/48", second(o.network.clusterCIDRs).String())
	require.Equal(t, "192.0.2.1", o.node.ip)
	require.Equal(t, []string{"192.0.2.1", "2001:db8::1"}, o.node.ips)
}

func TestConfigFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }

	write("https-port: 7443\nnode-name: from-file\ntls-san: [a.example, 192.0.2.9]\nagent: false\n")
	o, err := parseArgs("--config", path, "--node-name", "from-line")
	require.NoError(t, err)
	require.Equal(t, 7443, o.api.httpsPort)
	require.Equal(t, "from-line", o.node.name, "the command line wins")
	require.Equal(t, []string{"a.example", "192.0.2.9"}, o.api.tlsSANs)
	require.False(t, o.node.enabled)

	for text, message := range map[string]string{
		"nonsense: 1\n":                   "there is no flag --nonsense",
		"https-port: many\n":              `invalid argument "many"`,
		"https-port: 7443.5\n":            `invalid argument "7443.5`,
		"https-port: 70000\n":             "70000 is not a port",
		"config: other.yaml\n":            "there is no flag --config",
		"- a list\n":                      "--config: ",
		"node-name: a\nnode-name: b\n":    "--config: ",
		"data-dir: {path: /x}\n https: 1": "--config: ",
	} {
		write(text)
		_, err := parseArgs("--config", path)
		require.ErrorContains(t, err, message, text)
		var usage usageError
		require.ErrorAs(t, err, &usage, text)
	}
}

// PodSecurity is configured by a file as with kube-apiserver, which may name another beside it.
func TestAdmissionConfiguration(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n"
	write("pods.yaml", "apiVersion: pod-security.admission.config.k8s.io/v1\nkind: PodSecurityConfiguration\ndefaults: {enforce: baseline}\n")
	o, err := parseArgs("--node-ip", "10.0.0.1", "--admission-control-config-file", write("a.yaml", head+"- {name: PodSecurity, path: pods.yaml}"),
		"--enable-admission-plugins", "AlwaysPullImages", "--disable-admission-plugins", "Priority,MutatingAdmissionWebhook")
	require.NoError(t, err)
	require.Contains(t, string(o.admit.config.Plugins["PodSecurity"]), "baseline")
	require.Equal(t, []string{"AlwaysPullImages"}, o.admit.config.Enabled)

	for text, message := range map[string]string{
		head + "- {name: Magic, configuration: {}}":       `there is no admission plugin "Magic"`,
		head + "- {name: Priority, configuration: {}}":    `admission plugin "Priority" takes no configuration`,
		head + "- {name: PodSecurity, configuration: {}}": "admission configuration: PodSecurity: ",
		"kind: List": `it is a "List"`,
	} {
		_, err := parseArgs("--admission-control-config-file", write("wrong.yaml", text))
		require.ErrorContains(t, err, "--admission-control-config-file: ")
		require.ErrorContains(t, err, message)
	}
}

// An agent has the flags that it heeds and no others; what a whole cluster agrees on is among them.
func TestAgentFlags(t *testing.T) {
	var names []string
	agentCommand().Flags().VisitAll(func(f *pflag.Flag) {
		require.False(t, f.Hidden, f.Name)
		names = append(names, f.Name)
	})
	require.Equal(t, []string{"agent-port", "bind-address", "cgroup-root", "cluster-cidr", "cluster-domain", "cni", "cni-bin-dir", "cni-conf-dir", "config", "data-dir",
		"log-format", "log-level", "network-policy", "node-ip", "node-name", "node-runtime", "pki-dir", "runc", "server", "service-cidr", "token"}, slices.Sorted(slices.Values(names)))
	o := &agentOptions{}
	o.addFlags(pflag.NewFlagSet("agent", pflag.ContinueOnError))
	o.node.agentPort = 6443 // no API server is here
	require.NoError(t, o.complete())
	o.bindAddress = "nowhere"
	require.ErrorContains(t, o.complete(), `--bind-address: "nowhere" is not an IP address`)
}

func TestWithoutDashes(t *testing.T) {
	require.Equal(t, []string{"ls", "--", "-l"}, withoutDashes([]string{"--", "ls", "--", "-l"}))
	require.Equal(t, []string{"ls"}, withoutDashes([]string{"ls"}))
	require.Equal(t, []string{"--"}, withoutDashes([]string{"--"}))
}
