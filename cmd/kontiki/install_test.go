package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// filesBelow are the paths of all files below a directory, relative to it.
func filesBelow(t *testing.T, dir string) (files []string) {
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	}))
	return files
}

// TestInstall installs a server below a directory, runs what its unit runs, installs a new version over it, and uninstalls it:
// with its data kept at first, then nothing is left.
func TestInstall(t *testing.T) {
	root := t.TempDir()
	s := newServer(t, "n1")
	s.dir = filepath.Join(root, "var/lib/kontiki")
	flags := []string{"install", "server", "--root", root, "--node-name", "n1", "--agent=false", "--bind-address", "127.0.0.1", "--node-ip", "127.0.0.1",
		"--https-port", s.https, "--client-port", s.clientPort, "--peer-port", s.peers, "--tls-san", "a.example,b.example"}
	_, errOut, code := run(append(flags, "--service-cidr", "wrong")...)
	require.Equal(t, 2, code, errOut)
	require.Empty(t, filesBelow(t, root), "wrong flags are refused before anything is written")

	out, errOut, code := run(flags...)
	require.Zero(t, code, errOut)
	require.Contains(t, out, "systemd does not run here: start it with")
	config, unit, installed := filepath.Join(root, "etc/kontiki/server.yaml"), filepath.Join(root, "etc/systemd/system/kontiki-server.service"), filepath.Join(root, "usr/local/lib/kontiki/kontiki")
	info, err := os.Stat(config)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	text, err := os.ReadFile(unit)
	require.NoError(t, err)
	require.Contains(t, string(text), "ExecStart="+installed+" server --config "+config+"\n")
	if analyze, err := exec.LookPath("systemd-analyze"); err == nil {
		said, err := exec.Command(analyze, "verify", unit).CombinedOutput()
		require.NoError(t, err, string(said))
		require.Empty(t, string(said))
	}
	target, err := filepath.EvalSymlinks(filepath.Join(root, "usr/local/bin/kontiki"))
	require.NoError(t, err)
	require.Equal(t, installed, target)

	start := func() {
		s.program = installed
		s.run("server", "--config", config)
		s.ready()
	}
	start()
	s.kubectl("create", "configmap", "kept")
	before, err := os.ReadFile(config)
	require.NoError(t, err)
	_, errOut, code = run(flags...) // an upgrade: the program that runs is replaced
	require.Zero(t, code, errOut)
	after, err := os.ReadFile(config)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))

	_, errOut, code = run("uninstall", "--root", root, "--keep-data")
	require.Zero(t, code, errOut)
	<-s.ended
	require.Zero(t, s.cmd.ProcessState.ExitCode(), s.logged())
	for _, file := range filesBelow(t, root) {
		require.True(t, strings.HasPrefix(file, "var/lib/kontiki/"), file)
	}
	_, errOut, code = run(flags...)
	require.Zero(t, code, errOut)
	start()
	require.Equal(t, "configmap/kept", s.kubectl("get", "configmap", "kept", "-o", "name"))
	_, errOut, code = run("uninstall", "--root", root)
	require.Zero(t, code, errOut)
	<-s.ended
	require.Empty(t, filesBelow(t, root))
	_, errOut, code = run("uninstall", "--root", root)
	require.Zero(t, code, errOut)
}
