package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"kontiki/internal/etcdtest"
	"kontiki/internal/pki"
)

// A node keeps its objects in an etcd, and another that is started later with nothing but the same
// endpoints finds them there.
func TestDevOnEtcd(t *testing.T) {
	keys := t.TempDir()
	_, err := pki.Open(keys, pki.Options{})
	require.NoError(t, err)
	key := func(name string) string { return filepath.Join(keys, name) }
	e := etcdtest.StartWith(t, etcdtest.Options{CertFile: key("store-server.crt"), KeyFile: key("store-server.key"), CAFile: key("store-ca.crt")})
	start := func(dir string) *devProcess {
		return startDev(t, dir, freePort(t), freePort(t), freePort(t), "--store-endpoints", e.URL(),
			"--store-ca", key("store-ca.crt"), "--store-cert", key("store-client.crt"), "--store-key", key("store-client.key"))
	}
	dir := filepath.Join(t.TempDir(), "data")
	d := start(dir)
	out, errOut, code := run("kubectl", "--kubeconfig", filepath.Join(dir, adminKubeconfig), "create", "configmap", "kept")
	require.Zero(t, code, out+errOut)
	out, errOut, code = run("store", "status", "--data-dir", dir)
	require.Zero(t, code, errOut)
	require.Contains(t, out, "outside of this process: no member runs here")
	require.Contains(t, out, e.URL())
	_, err = os.Stat(filepath.Join(dir, "store"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Zero(t, d.stop(syscall.SIGTERM), d.logged())

	dir = filepath.Join(t.TempDir(), "other")
	d = start(dir)
	out, errOut, code = run("kubectl", "--kubeconfig", filepath.Join(dir, adminKubeconfig), "get", "configmap", "kept", "-o", "name")
	require.Equal(t, "configmap/kept\n", out, errOut)
	require.Zero(t, code)
	require.Zero(t, d.stop(syscall.SIGTERM), d.logged())
}
