package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

func storeEnvCommand(l *local) *cobra.Command {
	return &cobra.Command{
		Use: "env", Short: "Print the variables that point etcdctl at the store", Args: rejectArgs,
		Long: `Print the variables that point etcdctl at the store, for a shell:

  eval "$(kontiki store env)"
  etcdctl get --prefix --keys-only /registry/`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			url, err := l.control().StoreClientURL(cmd.Context())
			if err != nil {
				return err
			}
			dir, err := filepath.Abs(l.dataDir)
			if err != nil {
				return err
			}
			for _, v := range [][2]string{
				{"ETCDCTL_ENDPOINTS", url},
				{"ETCDCTL_CACERT", filepath.Join(dir, "pki", "store-ca.crt")},
				{"ETCDCTL_CERT", filepath.Join(dir, "pki", "store-client.crt")},
				{"ETCDCTL_KEY", filepath.Join(dir, "pki", "store-client.key")},
			} {
				fmt.Fprintf(cmd.OutOrStdout(), "export %s=%s\n", v[0], quoted(v[1]))
			}
			return nil
		},
	}
}

// quoted is a word of a POSIX shell that means exactly s.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
