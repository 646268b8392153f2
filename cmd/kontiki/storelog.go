package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"kontiki/internal/control"
	"kontiki/internal/controlplane"
	"kontiki/raftstore"
)

func (s *storeFlags) logCommand() *cobra.Command {
	q := logQuery{}
	cmd := &cobra.Command{Use: "log", Short: "Print the raft log of a member: who asked for what, and what came of it", Args: rejectArgs,
		Long: `Print the raft log of a member: who asked for what, and what came of it.

A line for each proposal; several may have travelled in one entry. REQUEST is the Audit-Id of the API request, which the
audit log and the server's log have as well. REVISION is what the proposal wrote, - if
it wrote nothing or that has been compacted. -o json prints one entry a line. While kontiki is not running, the log in
the data directory is read.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if q.limit < 0 {
				return usageError{fmt.Errorf("--limit: %d is less than 0", q.limit)}
			}
			out := cmd.OutOrStdout()
			if s.output == "json" {
				return s.readLog(cmd.Context(), q, func(e raftstore.LogEntry) error { return json.NewEncoder(out).Encode(e) })
			}
			head := sync.OnceFunc(func() {
				fmt.Fprintf(out, "%-8s %-5s %-13s %-9s %-30s %-36s %s\n", "INDEX", "TERM", "KIND", "REVISION", "BY", "REQUEST", "WHAT")
			})
			return s.readLog(cmd.Context(), q, func(e raftstore.LogEntry) error {
				head() // not before there is something: it may be an error
				return printEntry(out, e)
			})
		}}
	cmd.Flags().Uint64Var(&q.from, "from", 0, "index of the first entry to print")
	cmd.Flags().IntVar(&q.limit, "limit", 0, "how many entries to print at most (0: all)")
	cmd.Flags().StringVar(&q.member, "member", "", memberUsage)
	return cmd
}

// logQuery is which entries of whose log.
type logQuery struct {
	member string
	from   uint64
	limit  int // 0: all
}

// errEnough ends the reading of the log.
var errEnough = errors.New("enough")

// readLog reads the log of a running member or, if there is none to ask, of the one in the data directory.
func (s *storeFlags) readLog(ctx context.Context, q logQuery, f func(raftstore.LogEntry) error) error {
	err := s.control().StoreLog(ctx, q.member, q.from, q.limit, f)
	if !errors.Is(err, control.ErrNotRunning) || q.member != "" {
		return err
	}
	if _, missing := os.Stat(filepath.Join(s.dir(), "store")); missing != nil {
		return err
	}
	n := 0
	err = s.offline(func(dir *dataDir) error {
		return controlplane.ReadStoreLog(ctx, dir.join("store"), q.from, (&logOptions{}).logger(os.Stderr), func(e raftstore.LogEntry) error {
			if n++; q.limit > 0 && n > q.limit {
				return errEnough
			}
			return f(e)
		})
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// printEntry writes the lines of an entry. They have fixed widths, so that a long log can be read as it comes.
func printEntry(w io.Writer, e raftstore.LogEntry) error {
	line := func(kind, revision, by, request, what string) error {
		_, err := fmt.Fprintf(w, "%-8d %-5d %-13s %-9s %-30s %-36s %s\n", e.Index, e.Term, kind, revision, by, orDash(request), what)
		return err
	}
	if len(e.Proposals) == 0 {
		var members []string
		for _, m := range e.Members {
			members = append(members, m.ID+"="+m.Address)
		}
		return line(e.Kind, "-", "-", "-", strings.Join(members, " "))
	}
	for _, p := range e.Proposals {
		revision := "-"
		if p.Revision > 0 {
			revision = strconv.FormatInt(p.Revision, 10)
		}
		if err := line(p.Kind, revision, by(&p.Origin), p.Origin.RequestID, what(p)); err != nil {
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
