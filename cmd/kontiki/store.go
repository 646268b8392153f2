package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
)

func storeCommand() *cobra.Command {
	l := &local{}
	cmd := &cobra.Command{Use: "store", Short: "Look into the store", Args: rejectArgs}
	l.addFlags(cmd)
	cmd.AddCommand(&cobra.Command{
		Use: "status", Short: "Print the store member's status as JSON", Args: rejectArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			status, err := l.control().StoreStatus(cmd.Context())
			if err != nil {
				return err
			}
			var text bytes.Buffer
			if err := json.Indent(&text, status, "", "  "); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), text.String())
			return nil
		},
	})
	cmd.AddCommand(storeEnvCommand(l))
	return cmd
}
