package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"kontiki/internal/install"
)

// installFlags are those of `install` itself.
type installFlags struct {
	root    string
	noStart bool
}

// addFlags adds the flags of install that are no flags of what is installed.
func (f *installFlags) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.root, "root", "", "put everything below this directory, and start nothing")
	fs.BoolVar(&f.noStart, "no-start", false, "write the files, do not start the service")
}

func installCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "install", Short: "Make this machine a server or an agent: program, flags and systemd unit", Args: rejectArgs}
	cmd.AddCommand(
		installRole(install.Server, func(fs *pflag.FlagSet) func(*cobra.Command) error {
			o := &options{}
			o.addFlags(fs, serverDataDir)
			under("Store", fs, o.store.addJoinFlags)
			return func(cmd *cobra.Command) error { return parse(cmd, o) }
		}),
		installRole(install.Agent, func(fs *pflag.FlagSet) func(*cobra.Command) error {
			o := &agentOptions{}
			o.addFlags(fs)
			return func(cmd *cobra.Command) error {
				if err := readConfigFile(cmd.Flags()); err != nil {
					return err
				}
				return o.complete()
			}
		}))
	return cmd
}

// installRole is `install server` or `install agent`: its flags are those of the role, checked now and written down.
func installRole(role install.Role, add func(*pflag.FlagSet) (check func(*cobra.Command) error)) *cobra.Command {
	f := &installFlags{}
	cmd := &cobra.Command{
		Use: string(role), Short: "Install kontiki " + string(role) + " as a systemd service, with these flags", Args: rejectArgs,
		Long: "Install kontiki " + string(role) + ` as a systemd service, with these flags. Without any, the flags of an earlier install stay: so
a new version of the program is installed. kontiki uninstall takes everything away again.`,
	}
	check := add(cmd.Flags())
	f.addFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := check(cmd); err != nil {
			return err
		}
		return f.install(cmd, role)
	}
	return cmd
}

func (f *installFlags) install(cmd *cobra.Command, role install.Role) error {
	if f.root == "" && os.Geteuid() != 0 {
		return errors.New("install needs root")
	}
	out, layout := cmd.OutOrStdout(), install.Layout{Root: f.root}
	config, err := f.config(cmd.Flags())
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return err
	}
	err = install.Install(install.Options{Layout: layout, Role: role, Program: self, Config: config, Out: out})
	if err != nil || f.noStart {
		return err
	}
	if f.root == "" {
		install.EnsureNFT(out)
	}
	return install.Start(cmd.Context(), layout, role, out)
}

// config is the file with the flags that were given, on the command line or in a file; nil without any.
func (f *installFlags) config(fs *pflag.FlagSet) ([]byte, error) {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	(&installFlags{}).addFlags(own)
	values := map[string]any{}
	fs.Visit(func(flag *pflag.Flag) {
		if own.Lookup(flag.Name) != nil || flag.Name == "config" {
			return
		}
		values[flag.Name] = flag.Value.String()
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values[flag.Name] = list.GetSlice()
		}
	})
	if len(values) == 0 && f.root == "" {
		return nil, nil
	}
	if _, given := values["data-dir"]; !given && f.root != "" {
		values["data-dir"] = filepath.Join(f.root, fs.Lookup("data-dir").DefValue)
	}
	return yaml.Marshal(values)
}

// uninstallFlags are those of `uninstall`.
type uninstallFlags struct {
	root     string
	keepData bool
}

func uninstallCommand() *cobra.Command {
	f := &uninstallFlags{}
	cmd := &cobra.Command{
		Use: "uninstall", Short: "Stop Kontiki, end its pods, and remove everything of it from this machine", Args: rejectArgs,
		Long: `Stop Kontiki, end its pods, and remove everything of it from this machine: services, program, flags, data, mounts, cgroups,
interfaces and nftables. Of a cluster that goes on, take the machine out first: kubectl delete node, kontiki store members remove.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.uninstall(cmd) },
	}
	cmd.Flags().StringVar(&f.root, "root", "", "remove what was installed below this directory")
	cmd.Flags().BoolVar(&f.keepData, "keep-data", false, "leave the data directory: a later install goes on with it")
	return cmd
}

func (f *uninstallFlags) uninstall(cmd *cobra.Command) error {
	if f.root == "" && os.Geteuid() != 0 {
		return errors.New("uninstall needs root")
	}
	layout := install.Layout{Root: f.root}
	var errs []error
	for _, role := range install.Roles {
		if install.Installed(layout, role) {
			errs = append(errs, f.uninstallRole(cmd, layout, role))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err // the program stays: it is needed to try again
	}
	return install.RemovePrograms(layout)
}

func (f *uninstallFlags) uninstallRole(cmd *cobra.Command, layout install.Layout, role install.Role) error {
	o, err := installedOptions(layout, role)
	if err != nil {
		return err
	}
	if err := install.Stop(layout, role, o.dataDir); err != nil {
		return err
	}
	// Where no node has ever run, as below a --root that was only filled, what runs here is another one's.
	if o.node.enabled && o.node.runtime != "simulated" && exists(filepath.Join(o.dataDir, "agent")) {
		h := &agentHost{process: newProcess(cmd.Context()), options: o, log: o.log.logger(os.Stderr)}
		err := errors.Join(h.endPods(), install.RemoveRemains(cmd.Context(), o.dataDir, o.node.cgroupRoot))
		if err != nil {
			return err
		}
	}
	if !f.keepData {
		if err := install.RemoveData(o.dataDir); err != nil {
			return err
		}
	}
	if err := install.RemoveRole(layout, role); err != nil {
		return err
	}
	kept := ""
	if f.keepData {
		kept = ", but for " + o.dataDir
	}
	fmt.Fprintf(cmd.OutOrStdout(), "removed the %s%s\n", role, kept)
	return nil
}

// installedOptions are the flags that a role was installed with. What they name, such as a file of keys, may be gone.
func installedOptions(layout install.Layout, role install.Role) (*options, error) {
	o, fs := &options{}, pflag.NewFlagSet(string(role), pflag.ContinueOnError)
	if role == install.Server {
		o.addFlags(fs, serverDataDir)
		under("Store", fs, o.store.addJoinFlags)
	} else {
		a := &agentOptions{}
		a.addFlags(fs)
		a.node.enabled = true
		o = &a.options
	}
	if path := layout.Config(role); exists(path) {
		if err := fs.Set("config", path); err != nil {
			return nil, err
		}
	}
	if err := readConfigFile(fs); err != nil {
		return nil, err
	}
	return o, o.completeNode()
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// endPods ends the pods of a node that does not run any more, as `dev` does when it stops.
func (h *agentHost) endPods() (err error) {
	if h.dir, err = openDataDir(h.options.dataDir); err != nil {
		return err
	}
	h.onStop(h.dir.close)
	defer func() { err = errors.Join(err, h.stop()) }()
	if strings.HasPrefix(h.options.node.runtime, "unix://") {
		return nil // another program's, which has other users
	}
	conn, err := h.openBuiltIn()
	if err != nil {
		return err
	}
	return h.removePods(conn)
}
