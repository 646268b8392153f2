package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"kontiki/internal/controlplane"
)

// errStoreDiffers is the exit of `store hash` when members do not have the same content.
var errStoreDiffers = errors.New("members differ: one of them is wrong")

func (s *storeFlags) hashCommand() *cobra.Command {
	revision := int64(0)
	cmd := &cobra.Command{Use: "hash", Short: "Compare the fingerprints of all members' content at a revision", Args: rejectArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if revision < 0 {
				return usageError{fmt.Errorf("--revision: %d is not a revision", revision)}
			}
			hashes, err := s.control().StoreHashes(cmd.Context(), revision)
			if err != nil {
				return err
			}
			different := map[string]bool{}
			err = s.print(cmd.OutOrStdout(), hashes, func(w io.Writer) {
				fmt.Fprintln(w, "MEMBER\tREVISION\tHASH")
				for _, h := range hashes {
					fmt.Fprintf(w, "%s\t%d\t%s\n", h.MemberID, h.Revision, h.Hash+h.Error)
				}
			})
			for _, h := range hashes {
				if h.Error == "" {
					different[h.Hash] = true
				}
			}
			switch {
			case err == nil && len(different) > 1:
				return errStoreDiffers
			case err == nil && len(different) == 0:
				return errors.New("no member has a fingerprint to give")
			}
			return err
		}}
	cmd.Flags().Int64Var(&revision, "revision", 0, "the revision to compare at (0: the newest)")
	return cmd
}

func (s *storeFlags) compactCommand() *cobra.Command {
	return &cobra.Command{Use: "compact REVISION", Short: "Forget the history before a revision, on all members", Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			revision, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil {
				return usageError{fmt.Errorf("%q is not a revision", args[0])}
			}
			return s.control().CompactStore(cmd.Context(), revision)
		}}
}

func (s *storeFlags) snapshotCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "snapshot", Short: "Save the store to a file, or restore it from one", Args: rejectArgs}
	bump := int64(0)
	restore := &cobra.Command{Use: "restore FILE", Short: "Make a new store of one member out of a snapshot; kontiki must not be running", Args: exactArgs(1),
		Long: `Make a new store of one member out of a snapshot; kontiki must not be running.

There must be no store in the data directory: move DATA-DIR/store away first. Keys keep their revisions; the
store's own revision jumps, and what was before is compacted, so that every client lists anew.`,
		RunE: func(_ *cobra.Command, args []string) error {
			return s.offline(func(dir *dataDir) error { return restoreSnapshot(dir.join("store"), args[0], bump) })
		}}
	restore.Flags().Int64Var(&bump, "bump", 0, "how far the revision jumps (default 1000000000)")
	cmd.AddCommand(restore, &cobra.Command{Use: "save FILE", Short: "Save a snapshot of the store, with a checksum", Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return s.saveSnapshot(cmd.Context(), args[0]) }})
	return cmd
}

// saveSnapshot leaves a whole file or none.
func (s *storeFlags) saveSnapshot(ctx context.Context, path string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // CreateTemp's mode is 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // after the rename there is nothing to remove
	if err = s.control().SaveStoreSnapshot(ctx, f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("save snapshot: %w", err)
	}
	return os.Rename(f.Name(), path)
}

func restoreSnapshot(dir, path string, bump int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return controlplane.RestoreStore(dir, f, bump, (&logOptions{}).logger(os.Stderr))
}

func (s *storeFlags) recoverCommand() *cobra.Command {
	sure := false
	cmd := &cobra.Command{Use: "recover", Short: "Make this member the only one, when most members are lost for good; kontiki must not be running", Args: rejectArgs,
		Long: `Make this member the only one of its cluster, when most members are lost for good.

What the lost members acknowledged without this one is lost, and they must never be started with their old
data again. It is refused while a majority of the members answers: they are asked at their peer addresses.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !sure {
				return usageError{errors.New("acknowledged writes may be lost: say --yes if the other members are gone for good")}
			}
			return s.offline(func(dir *dataDir) error {
				return controlplane.RecoverStore(cmd.Context(), dir.join("store"), dir.join("pki"), (&logOptions{}).logger(os.Stderr))
			})
		}}
	cmd.Flags().BoolVar(&sure, "yes", false, "the other members are gone for good")
	return cmd
}

// offline calls f with the data directory, while no other kontiki has the data directory.
func (s *storeFlags) offline(f func(dir *dataDir) error) error {
	dir, err := openDataDir(s.dir())
	if err != nil {
		return err
	}
	return errors.Join(f(dir), dir.close())
}
