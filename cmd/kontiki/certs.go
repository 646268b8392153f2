package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"kontiki/internal/control"
	"kontiki/internal/joining"
	"kontiki/internal/pki"
)

// certsFlags are common to the commands about certificates.
type certsFlags struct {
	local
	output string
	force  bool
	server string
}

func certsCommand() *cobra.Command {
	f := &certsFlags{}
	cmd := &cobra.Command{Use: "certs", Short: "Look at a node's certificates, renew them, replace the authorities", Args: rejectArgs}
	f.addFlags(cmd)
	status := &cobra.Command{Use: "status", Short: "List the certificates, whom they are for and how long they last", Args: rejectArgs, RunE: f.status,
		Long: "List the certificates, whom they are for and how long they last. The exit code is 1 if one has expired or cannot be used."}
	status.Flags().StringVarP(&f.output, "output", "o", "", "json for JSON (default: a table)")
	renew := &cobra.Command{Use: "renew [NAME…]", Short: "Issue certificates again, all of them or those named as status has them, without .crt", RunE: f.renew,
		Long: `Issue certificates again: all of them, or those named as "certs status" lists them, without ".crt".

A running server renews its certificates by itself, before they expire, and so do agents; one that was switched off for too
long does when it starts. This command does it now, on the files of a running or of a stopped server, and writes
admin.kubeconfig anew. An authority that has expired is signed again with the key that it has: give its new certificate to
those who trust it (the other servers with "certs fetch", people with admin.kubeconfig).`}
	rotate := &cobra.Command{Use: "rotate", Short: "Replace authorities, or the key of service-account tokens, in two steps", Args: rejectArgs}
	finish := &cobra.Command{Use: "finish [NAME…]", Short: "Drop what was replaced, once nothing depends on it", RunE: f.finish, ValidArgs: pki.Rotatable()}
	finish.Flags().BoolVar(&f.force, "force", false, "do not ask the servers and nodes of the cluster whether they have followed")
	rotate.AddCommand(&cobra.Command{Use: "start [NAME…]", Short: "Make new ones, which are trusted beside the old ones (default: " + strings.Join(pki.Rotatable(), ", ") + ")",
		RunE: f.start, ValidArgs: pki.Rotatable()}, finish)
	fetch := &cobra.Command{Use: "fetch --server URL", Short: "Follow another server of the cluster in a rotation", Args: rejectArgs, RunE: f.fetch}
	fetch.Flags().StringVar(&f.server, "server", "", "URL of that server's API")
	cmd.AddCommand(status, renew, rotate, fetch)
	return cmd
}

func (f *certsFlags) pkiDir() string { return filepath.Join(f.dir(), "pki") }

func (f *certsFlags) status(cmd *cobra.Command, _ []string) error {
	if f.output != "" && f.output != "json" && f.output != "table" {
		return wrong("output", "%q is neither json nor table", f.output)
	}
	entries, err := pki.Inventory(f.pkiDir(), time.Now())
	if err != nil {
		return err
	}
	if f.output == "json" {
		e := json.NewEncoder(cmd.OutOrStdout())
		e.SetIndent("", "  ")
		err = e.Encode(entries)
	} else {
		err = writeCertificates(cmd.OutOrStdout(), entries)
	}
	if err == nil && slices.ContainsFunc(entries, func(e pki.Entry) bool { return e.Unusable }) {
		return exitCode(1)
	}
	return err
}

func writeCertificates(out io.Writer, entries []pki.Entry) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "FILE\tSUBJECT\tNAMES\tEXPIRES\tSIGNED BY\tSTATE")
	for _, e := range entries {
		expires := ""
		if !e.Expires.IsZero() {
			expires = e.Expires.Local().Format(time.DateTime)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", e.File, orDash(e.Subject), orDash(shortened(e.Names)), orDash(expires), orDash(e.SignedBy), e.State)
	}
	return w.Flush()
}

// shortened leaves out names beyond the third: JSON has them all.
func shortened(names []string) string {
	if len(names) > 3 {
		return fmt.Sprintf("%s +%d", strings.Join(names[:3], ","), len(names)-3)
	}
	return strings.Join(names, ",")
}

func (f *certsFlags) renew(cmd *cobra.Command, names []string) error {
	if err := f.isServers(); err != nil {
		return err
	}
	renewed, err := pki.Renew(f.pkiDir(), names, time.Now(), 0)
	for _, name := range renewed {
		fmt.Fprintf(cmd.OutOrStdout(), "renewed %s\n", name)
	}
	return errors.Join(err, f.taken(cmd))
}

// isServers refuses the directory of an agent, which has no authority.
func (f *certsFlags) isServers() error {
	if _, err := os.Stat(filepath.Join(f.pkiDir(), "ca.key")); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s has no authority: an agent renews its certificates by itself, or joins again with a --token if they have expired", f.pkiDir())
	} else if err != nil {
		return err
	}
	return nil
}

// taken has a running server take the files into use, and otherwise writes admin.kubeconfig anew.
func (f *certsFlags) taken(cmd *cobra.Command) error {
	err := f.control().ReloadCertificates(cmd.Context())
	if !errors.Is(err, control.ErrNotRunning) {
		return err
	}
	path := filepath.Join(f.dir(), adminKubeconfig)
	old, err := clientcmd.LoadFromFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it comes with the first start
	}
	if err != nil {
		return err
	}
	current, ok := old.Contexts[old.CurrentContext]
	if !ok || old.Clusters[current.Cluster] == nil {
		return fmt.Errorf("%s names no cluster: remove it to have it written anew when the server starts", path)
	}
	admin, ca, err := pki.AdminOf(f.pkiDir())
	if err != nil {
		return err
	}
	if err := pki.WriteKubeconfig(path, old.Clusters[current.Cluster].Server, ca, admin); err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "wrote %s\n", path)
	return err
}

func (f *certsFlags) start(cmd *cobra.Command, names []string) error {
	if err := errors.Join(checkRotatable(names), f.isServers()); err != nil {
		return err
	}
	if len(names) == 0 {
		names = pki.Rotatable()
	}
	if err := pki.StartRotation(f.pkiDir(), names, time.Now()); err != nil {
		return err
	}
	if err := f.taken(cmd); err != nil {
		return err
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "new: %s\nNext, on each other server: kontiki certs fetch --server URL-OF-THIS-ONE\nThen, when all nodes have followed (a minute): kontiki certs rotate finish\n", strings.Join(names, ", "))
	return err
}

func checkRotatable(names []string) error {
	for _, name := range names {
		if !slices.Contains(pki.Rotatable(), name) {
			return usageError{fmt.Errorf("%q is none of %s", name, strings.Join(pki.Rotatable(), ", "))}
		}
	}
	return nil
}

func (f *certsFlags) finish(cmd *cobra.Command, names []string) error {
	if err := errors.Join(checkRotatable(names), f.isServers()); err != nil {
		return err
	}
	if len(names) == 0 {
		names = pki.Rotating(f.pkiDir())
	}
	if len(names) == 0 {
		return errors.New("no rotation has begun: kontiki certs rotate start")
	}
	if slices.Contains(names, "ca") && !f.force {
		if err := f.allFollowed(cmd.Context()); err != nil {
			return fmt.Errorf("%w\nNothing was dropped. Bring them up to date, or remove the nodes that are gone; --force drops the old authority all the same", err)
		}
	}
	if err := pki.FinishRotation(f.pkiDir(), names, time.Now()); err != nil {
		return err
	}
	if err := f.taken(cmd); err != nil {
		return err
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "finished: %s\n", strings.Join(names, ", "))
	return err
}

func (f *certsFlags) fetch(cmd *cobra.Command, _ []string) error {
	if f.server == "" {
		return wrong("server", "must be the URL of another server's API, such as https://10.0.0.1:6443")
	}
	if err := f.isServers(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), joinPatience)
	defer cancel()
	config, err := pki.AdminTLS(f.pkiDir())
	if err != nil {
		return err
	}
	files, err := joining.FetchKeysAs(ctx, f.server, config)
	if err != nil {
		return err
	}
	changed, err := pki.Follow(f.pkiDir(), files)
	if err != nil {
		return err
	}
	if !changed {
		_, err = fmt.Fprintln(cmd.OutOrStdout(), "nothing is new")
		return err
	}
	if _, err := pki.Renew(f.pkiDir(), nil, time.Now(), 0); err != nil {
		return err
	}
	return f.taken(cmd)
}
