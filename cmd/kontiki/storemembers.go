package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"kontiki/raftstore"
)

func (s *storeFlags) membersCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "members", Short: "List the members of the store; subcommands change them", Args: rejectArgs, RunE: s.listMembers}
	learner := false
	add := &cobra.Command{Use: "add ID ADDRESS", Short: "Let a member in that will run at ADDRESS; it votes once it has caught up", Args: exactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			change := "add"
			if learner {
				change = "add-learner"
			}
			return s.control().ChangeMembers(cmd.Context(), change, args[0], args[1])
		}}
	add.Flags().BoolVar(&learner, "learner", false, "it gets no vote until it is promoted")
	cmd.AddCommand(add,
		&cobra.Command{Use: "update ID ADDRESS", Short: "Say where the others reach a member", Args: exactArgs(2),
			RunE: func(cmd *cobra.Command, args []string) error {
				return s.control().ChangeMembers(cmd.Context(), "update", args[0], args[1])
			}},
		s.changeCommand("promote", "Give a learner its vote"),
		s.changeCommand("remove", "Remove a member, the leader too"),
		s.changeCommand("lead", "Hand leadership over to a member"))
	return cmd
}

func (s *storeFlags) changeCommand(change, short string) *cobra.Command {
	return &cobra.Command{Use: change + " ID", Short: short, Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.control().ChangeMembers(cmd.Context(), change, args[0], "")
		}}
}

func (s *storeFlags) listMembers(cmd *cobra.Command, _ []string) error {
	members, err := s.control().StoreMembers(cmd.Context())
	if err != nil {
		return err
	}
	return s.print(cmd.OutOrStdout(), members, func(w io.Writer) {
		fmt.Fprintln(w, "ID\tNAME\tPEER ADDRESS\tCLIENT URLS\tROLE\tANSWERS")
		for _, m := range members {
			kind, answers := "Unknown", m.Error
			if m.Status != nil {
				kind, answers = role(m), "yes"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", m.ID, orDash(m.Name), m.Address, orDash(strings.Join(m.ClientURLs, ",")), kind, answers)
		}
	})
}

func (s *storeFlags) alarmsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "alarms", Short: "List the alarms that are on", Args: rejectArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			alarms, err := s.control().StoreAlarms(cmd.Context())
			if err != nil {
				return err
			}
			return s.print(cmd.OutOrStdout(), alarms, func(w io.Writer) {
				fmt.Fprintln(w, "KIND\tMEMBER")
				for _, a := range alarms {
					fmt.Fprintf(w, "%s\t%s\n", a.Kind, a.MemberID)
				}
			})
		}}
	cmd.AddCommand(&cobra.Command{Use: "clear [KIND [MEMBER]]", Short: "End the alarms that are on, of a kind, or of a member; they come back if their cause lasts",
		RunE: s.clearAlarms, Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 2 || len(args) > 0 && args[0] != raftstore.AlarmNoSpace && args[0] != raftstore.AlarmCorrupt {
				return usageError{fmt.Errorf("usage: kontiki store alarms clear [%s|%s [MEMBER]]", raftstore.AlarmNoSpace, raftstore.AlarmCorrupt)}
			}
			return nil
		}})
	return cmd
}

func (s *storeFlags) clearAlarms(cmd *cobra.Command, args []string) error {
	alarms, err := s.control().StoreAlarms(cmd.Context())
	if err != nil {
		return err
	}
	cleared := 0
	for _, a := range alarms {
		if len(args) > 0 && args[0] != a.Kind || len(args) > 1 && args[1] != a.MemberID {
			continue
		}
		if err := s.control().ClearStoreAlarm(cmd.Context(), a); err != nil {
			return fmt.Errorf("alarm %s of %s: %w", a.Kind, a.MemberID, err)
		}
		cleared++
	}
	if cleared == 0 && len(args) > 0 {
		return fmt.Errorf("no alarm %s is on", strings.Join(args, " of "))
	}
	return nil
}
