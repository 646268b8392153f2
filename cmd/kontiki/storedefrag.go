package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"kontiki/internal/control"
)

// memberUsage says how a command is told which member it is about.
const memberUsage = "id, name, peer address or client URL of the member to ask (default: the one here)"

// defragmented is what became of a member's file.
type defragmented struct {
	ID          string `json:"id"`
	Name        string `json:"name,omitempty"`
	BytesBefore int64  `json:"bytesBefore"`
	BytesAfter  int64  `json:"bytesAfter"`
	Error       string `json:"error,omitempty"`
}

func (s *storeFlags) defragCommand() *cobra.Command {
	member, all := "", false
	cmd := &cobra.Command{Use: "defrag", Short: "Give the free pages of a member's file back to its disk; the store goes on meanwhile", Args: rejectArgs,
		Long: `Give the free pages of a member's file back to its disk; the store goes on meanwhile.

With --cluster all members do so, one after the other, the leader last. One that does not answer is left out, and
the exit code is 1.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if all && member != "" {
				return usageError{errors.New("--cluster and --member exclude each other")}
			}
			if !all {
				return s.control().DefragmentStore(cmd.Context(), member)
			}
			return s.defragmentAll(cmd)
		}}
	cmd.Flags().StringVar(&member, "member", "", memberUsage)
	cmd.Flags().BoolVar(&all, "cluster", false, "defragment all members, one after the other")
	return cmd
}

func (s *storeFlags) defragmentAll(cmd *cobra.Command) error {
	members, err := s.control().StoreMembers(cmd.Context())
	if err != nil {
		return err
	}
	slices.SortStableFunc(members, func(a, b control.StoreMember) int { return leads(a) - leads(b) })
	var done []defragmented
	failed := 0
	for _, m := range members {
		d := s.defragment(cmd.Context(), m)
		if d.Error != "" {
			failed++
		}
		done = append(done, d)
	}
	err = s.print(cmd.OutOrStdout(), done, func(w io.Writer) {
		fmt.Fprintln(w, "ID\tNAME\tBEFORE\tAFTER\tERROR")
		for _, d := range done {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", d.ID, orDash(d.Name), size(d.BytesBefore), size(d.BytesAfter), d.Error)
		}
	})
	if err == nil && failed > 0 {
		err = fmt.Errorf("%d of %d members were not defragmented", failed, len(members))
	}
	return err
}

func leads(m control.StoreMember) int {
	if m.Status != nil && m.Status.Role == "Leader" {
		return 1
	}
	return 0
}

func (s *storeFlags) defragment(ctx context.Context, m control.StoreMember) defragmented {
	d := defragmented{ID: m.ID, Name: m.Name, Error: m.Error}
	if m.Status == nil {
		return d
	}
	d.BytesBefore, d.BytesAfter = m.Status.Store.FileBytes, m.Status.Store.FileBytes
	if err := s.control().DefragmentStore(ctx, m.ID); err != nil {
		d.Error = err.Error()
		return d
	}
	now, err := s.control().StoreMembers(ctx)
	if i := slices.IndexFunc(now, func(x control.StoreMember) bool { return x.ID == m.ID && x.Status != nil }); err == nil && i >= 0 {
		d.BytesAfter = now[i].Status.Store.FileBytes
	}
	return d
}
