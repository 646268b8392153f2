package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"kontiki/internal/control"
	"kontiki/raftstore"
)

// storeFlags are common to the commands about the store.
type storeFlags struct {
	local
	output string
}

func storeCommand() *cobra.Command {
	s := &storeFlags{}
	cmd := &cobra.Command{Use: "store", Short: "Look into the store and look after it", Args: rejectArgs}
	s.addFlags(cmd)
	cmd.PersistentFlags().StringVarP(&s.output, "output", "o", "", "json for JSON (default: a table)")
	cmd.PersistentPreRunE = func(*cobra.Command, []string) error {
		if s.output != "" && s.output != "json" && s.output != "table" {
			return wrong("output", "%q is neither json nor table", s.output)
		}
		return nil
	}
	cmd.AddCommand(s.statusCommand(), s.membersCommand(), s.logCommand(), s.historyCommand(), s.hashCommand(), s.alarmsCommand(),
		s.compactCommand(), s.defragCommand(), s.snapshotCommand(), s.recoverCommand(), storeEnvCommand(&s.local))
	return cmd
}

// print writes a value as JSON, or as the table that rows writes.
func (s *storeFlags) print(out io.Writer, value any, rows func(w io.Writer)) error {
	if s.output == "json" {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(value)
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	rows(w)
	return w.Flush()
}

func (s *storeFlags) statusCommand() *cobra.Command {
	return &cobra.Command{Use: "status", Short: "Print what each member of the store says about itself", Args: rejectArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			members, err := s.control().StoreMembers(cmd.Context())
			if errors.Is(err, control.ErrNoMember) {
				return s.outsideStatus(cmd)
			}
			if err != nil {
				return err
			}
			return s.print(cmd.OutOrStdout(), members, func(w io.Writer) { printStatus(w, members) })
		}}
}

// outsideStatus is for a store outside of Kontiki.
func (s *storeFlags) outsideStatus(cmd *cobra.Command) error {
	status, err := s.control().StoreStatus(cmd.Context())
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := json.Indent(&text, status, "", "  "); err != nil {
		return err
	}
	fmt.Fprintln(cmd.OutOrStdout(), text.String())
	return nil
}

func printStatus(w io.Writer, members []control.StoreMember) {
	fmt.Fprintln(w, "ID\tNAME\tROLE\tTERM\tVOTE\tFIRST\tLAST\tCOMMIT\tAPPLIED\tSNAPSHOT\tREVISION\tCOMPACTED\tDB SIZE\tIN USE\tFREE PAGES\tLOG SIZE\tKEYS\tNOTES")
	for _, m := range members {
		st := m.Status
		if st == nil {
			fmt.Fprintf(w, "%s\t%s\t%s%s%s\n", m.ID, orDash(m.Name), "Unknown", strings.Repeat("\t-", 14)+"\t", m.Error)
			continue
		}
		snapshot := "-"
		if st.Snapshot != nil {
			snapshot = strconv.FormatUint(st.Snapshot.Index, 10)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%d\t%d\t%d\t%d\t%s\t%d\t%d\t%s\t%s\t%d\t%s\t%d\t%s\n", m.ID, orDash(m.Name), role(m), st.Term, orDash(st.Vote),
			st.FirstIndex, st.LastIndex, st.CommitIndex, st.Store.Applied, snapshot, st.Store.Revision, st.Store.Compacted,
			size(st.Store.FileBytes), size(st.Store.InUseBytes), st.Store.FreePages, size(st.LogBytes), st.Store.Keys, notes(m.ID, st))
	}
}

// notes is what is out of the ordinary: snapshots on their way, and alarms.
func notes(id string, st *raftstore.Status) string {
	var list []string
	for _, x := range st.Sending {
		list = append(list, fmt.Sprintf("sends a snapshot to %s: %s of %s", x.To, size(x.Sent), size(x.Bytes)))
	}
	for _, a := range st.Alarms {
		if a.MemberID == id {
			list = append(list, "alarm "+a.Kind)
		}
	}
	return strings.Join(list, ", ")
}

func role(m control.StoreMember) string {
	if m.Learner {
		return "Learner"
	}
	return m.Status.Role
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// size is a number of bytes for people.
func size(n int64) string {
	for _, unit := range []string{"B", "KiB", "MiB"} {
		if n < 1024 {
			return fmt.Sprintf("%d%s", n, unit)
		}
		n /= 1024
	}
	return fmt.Sprintf("%dGiB", n)
}
