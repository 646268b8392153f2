package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

// kubectl runs the embedded kubectl; argv[0] is its name. It ends the process on an error, with
// kubectl's own exit codes.
func kubectl(argv []string) {
	useLocalCluster()
	os.Args = argv // plugins and completion look at it
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}

// useLocalCluster points kubectl at this machine's cluster, unless the environment says otherwise.
// A --kubeconfig flag wins over both.
func useLocalCluster() {
	if os.Getenv("KUBECONFIG") != "" {
		return
	}
	for _, dir := range []string{devDataDir, serverDataDir} {
		path := filepath.Join(dir, adminKubeconfig)
		if _, err := os.Stat(path); err == nil {
			os.Setenv("KUBECONFIG", path)
			return
		}
	}
}

// kubectlCommand is here for `kontiki help`: main has called kubectl before cobra sees the arguments.
func kubectlCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "kubectl",
		Short:              "The embedded kubectl, pointed at ./.kontiki or /var/lib/kontiki unless KUBECONFIG is set",
		DisableFlagParsing: true,
		Run:                func(_ *cobra.Command, args []string) { kubectl(append([]string{"kubectl"}, args...)) },
	}
}
