package main

import (
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// TestHelp holds all commands to one form, as tables of them are read: a sentence without its full stop for each, and
// a word about every flag.
func TestHelp(t *testing.T) {
	var check func(*cobra.Command)
	check = func(cmd *cobra.Command) {
		at := cmd.CommandPath()
		require.NotEmpty(t, cmd.Short, at)
		require.True(t, unicode.IsUpper(rune(cmd.Short[0])), "%s: %s", at, cmd.Short)
		require.False(t, strings.HasSuffix(cmd.Short, "."), "%s: %s", at, cmd.Short)
		require.NotContains(t, cmd.Long, "\t", at)
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			require.NotEmpty(t, f.Usage, "%s --%s", at, f.Name)
			require.False(t, strings.HasSuffix(f.Usage, ".") && cmd.Name() != "history", "%s --%s: %s", at, f.Name, f.Usage)
		})
		for _, sub := range cmd.Commands() {
			check(sub)
		}
	}
	check(rootCommand())
}

// Every command that starts something lists its flags under headings, and shows each once.
func TestHelpHasHeadings(t *testing.T) {
	for command, headings := range map[string][]string{
		"server":         {"Flags:", "The cluster's networks:", "This node:", "Store:", "API server:", "Audit log:"},
		"dev":            {"Flags:", "The cluster's networks:", "This node:", "Store:", "API server:", "Audit log:"},
		"agent":          {"Flags:", "The cluster's networks:", "This node:"},
		"install server": {"Flags:", "The cluster's networks:", "This node:", "Store:", "API server:", "Audit log:"},
	} {
		help, _, code := run(append(strings.Fields(command), "--help")...)
		require.Zero(t, code, command)
		rest := help
		for _, heading := range headings {
			_, after, found := strings.Cut(rest, "\n"+heading+"\n")
			require.True(t, found, "%s has no %q, or too early:\n%s", command, heading, help)
			rest = after
		}
		for _, flag := range []string{"--config ", "--data-dir ", "--node-name ", "--cluster-cidr ", "--help "} {
			require.Equal(t, 1, strings.Count(help, " "+flag), "%s %s", command, flag)
		}
	}
	help, _, _ := run("--help")
	require.Less(t, strings.Index(help, "Run a cluster:"), strings.Index(help, "Use it:"))
	require.NotContains(t, help, "Available Commands", "every command of ours is in a group")
}
