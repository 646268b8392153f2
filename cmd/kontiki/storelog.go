package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"kontiki/raftstore"
)

func (s *storeFlags) logCommand() *cobra.Command {
	from, limit := uint64(0), 0
	cmd := &cobra.Command{Use: "log", Short: "Print the raft log of the member here: who asked for what, and what came of it", Args: rejectArgs,
		Long: `Print the raft log of the member here: who asked for what, and what came of it.

A line for each proposal; several may have travelled in one entry. REVISION is what the proposal wrote, - if
it wrote nothing or that has been compacted. -o json prints one entry a line.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return usageError{fmt.Errorf("--limit: %d is less than 0", limit)}
			}
			out, head := cmd.OutOrStdout(), sync.OnceFunc(func() {
				fmt.Fprintf(cmd.OutOrStdout(), "%-8s %-5s %-13s %-9s %-30s %s\n", "INDEX", "TERM", "KIND", "REVISION", "BY", "WHAT")
			})
			print := func(e raftstore.LogEntry) error {
				head() // not before there is something: it may be an error
				return printEntry(out, e)
			}
			if s.output == "json" {
				print = func(e raftstore.LogEntry) error { return json.NewEncoder(out).Encode(e) }
			}
			return s.control().StoreLog(cmd.Context(), from, limit, print)
		}}
	cmd.Flags().Uint64Var(&from, "from", 0, "index of the first entry to print")
	cmd.Flags().IntVar(&limit, "limit", 0, "how many entries to print at most (0: all)")
	return cmd
}

// printEntry writes the lines of an entry. They have fixed widths, so that a long log can be read as it comes.
func printEntry(w io.Writer, e raftstore.LogEntry) error {
	line := func(kind, revision, by, what string) error {
		_, err := fmt.Fprintf(w, "%-8d %-5d %-13s %-9s %-30s %s\n", e.Index, e.Term, kind, revision, by, what)
		return err
	}
	if len(e.Proposals) == 0 {
		var members []string
		for _, m := range e.Members {
			members = append(members, m.ID+"="+m.Address)
		}
		return line(e.Kind, "-", "-", strings.Join(members, " "))
	}
	for _, p := range e.Proposals {
		revision := "-"
		if p.Revision > 0 {
			revision = strconv.FormatInt(p.Revision, 10)
		}
		if err := line(p.Kind, revision, by(&p.Origin), what(p)); err != nil {
			return err
		}
	}
	return nil
}

func what(p raftstore.LogProposal) string {
	text := strings.Join(p.Then, ", ")
	if len(p.Compares) > 0 {
		text = "if " + strings.Join(p.Compares, " and ") + ": " + text
	}
	if len(p.Else) > 0 {
		text += "; else: " + strings.Join(p.Else, ", ")
	}
	return text
}

// by says who asked.
func by(o *raftstore.Origin) string {
	if o == nil || o.User == "" {
		return "-"
	}
	agent, _, _ := strings.Cut(o.UserAgent, " ")
	return strings.TrimSuffix(o.User+" ("+agent+")", " ()")
}

func (s *storeFlags) historyCommand() *cobra.Command {
	return &cobra.Command{Use: "history KEY", Short: "Print all changes of a key, and who asked for them as far as the log reaches back", Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			changes, err := s.control().StoreHistory(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return s.print(cmd.OutOrStdout(), changes, func(w io.Writer) {
				fmt.Fprintln(w, "REVISION\tKIND\tCREATED\tVERSION\tLEASE\tBYTES\tINDEX\tTERM\tAT\tBY")
				for _, c := range changes {
					at := "-"
					if c.At != nil {
						at = c.At.Format(time.RFC3339)
					}
					fmt.Fprintf(w, "%d.%d\t%s\t%d\t%d\t%x\t%d\t%d\t%d\t%s\t%s\n", c.Revision, c.Sub, c.Kind, c.CreateRevision, c.Version,
						c.Lease, len(c.Value), c.Index, c.Term, at, by(c.By))
				}
			})
		}}
}
