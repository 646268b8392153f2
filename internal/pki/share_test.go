package pki

import (
	"crypto/tls"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// joined is a second server's directory with the keys of the first.
func joined(t *testing.T, from string) (dir string, p *PKI) {
	t.Helper()
	files, err := Export(from)
	require.NoError(t, err)
	dir = filepath.Join(t.TempDir(), "pki")
	require.NoError(t, Import(dir, files))
	p, err = Open(dir, Options{NodeName: "b"})
	require.NoError(t, err)
	return dir, p
}

func TestImport(t *testing.T) {
	first := filepath.Join(t.TempDir(), "pki")
	a, err := Open(first, Options{NodeName: "a"})
	require.NoError(t, err)
	dir, b := joined(t, first)
	require.Equal(t, a.Hash(), b.Hash())
	require.Equal(t, a.ClusterID(), b.ClusterID())
	require.Equal(t, a.AccountKeys().Signer.Public(), b.AccountKeys().Signer.Public())
	user, err := handshake(t, a.StorePeer(), b.StorePeer())
	require.Error(t, err, "it asks for n1: %s", user)
	_, err = handshake(t, mustOpen(t, first, "n1").StorePeer(), b.StorePeer())
	require.NoError(t, err)

	files, err := Export(first)
	require.NoError(t, err)
	require.NotContains(t, files, "admin.key")
	require.Error(t, Import(dir, files), "it is there already")
	for name, spoil := range map[string]func(map[string][]byte){
		"a file missing":    func(f map[string][]byte) { delete(f, "store-ca.key") },
		"no account key":    func(f map[string][]byte) { delete(f, "sa.key") },
		"a damaged one":     func(f map[string][]byte) { f["ca.crt"] = f["ca.crt"][:100] },
		"of two clusters":   func(f map[string][]byte) { f["ca.key"] = f["store-ca.key"] },
		"another directory": func(f map[string][]byte) { f["../evil"] = []byte("x") },
		"another file":      func(f map[string][]byte) { f["admin.key"] = f["ca.key"] },
	} {
		spoilt := maps.Clone(files)
		spoil(spoilt)
		target := filepath.Join(t.TempDir(), "pki")
		require.Error(t, Import(target, spoilt), name)
		require.NoDirExists(t, target, name)
		require.NoDirExists(t, target+".new", name)
		before := readAll(t, dir)
		_, err := Follow(dir, spoilt)
		require.Error(t, err, name)
		require.Equal(t, before, readAll(t, dir), name)
	}
}

func mustOpen(t *testing.T, dir, name string) *PKI {
	t.Helper()
	p, err := Open(dir, Options{NodeName: name})
	require.NoError(t, err)
	return p
}

// TestFollow: another server follows a rotation step by step, and at each step both get through to each other. One that has
// missed all of it is told so.
func TestFollow(t *testing.T) {
	first := filepath.Join(t.TempDir(), "pki")
	a, err := Open(first, Options{NodeName: "n1"})
	require.NoError(t, err)
	dir, b := joined(t, first)
	late, _ := joined(t, first)
	reach := func() {
		t.Helper()
		for _, pair := range [][2]*tls.Config{{a.APIServing(), b.APIClient(Admin)}, {a.StorePeer(), b.StorePeer()}} {
			_, err := handshake(t, pair[0], pair[1])
			require.NoError(t, err)
		}
		b.opts.NodeName = "n1" // handshake calls it so
		_, err := b.Refresh()
		require.NoError(t, err)
		_, err = handshake(t, b.APIServing(), a.APIClient(Admin))
		require.NoError(t, err)
	}
	follow := func(dir string) (bool, error) {
		files, err := Export(first)
		require.NoError(t, err)
		return Follow(dir, files)
	}
	follows := func(want bool) {
		t.Helper()
		changed, err := follow(dir)
		require.NoError(t, err)
		require.Equal(t, want, changed)
	}
	reach()
	follows(false)
	require.NoError(t, StartRotation(first, Rotatable(), time.Now()))
	_, err = a.Refresh()
	require.NoError(t, err)
	reach() // the second server has not followed
	follows(true)
	follows(false)
	reach()
	require.Equal(t, a.Hash(), b.Hash())
	require.Len(t, b.AccountKeys().Others, 1)
	require.NoError(t, FinishRotation(first, Rotatable(), time.Now()))
	_, err = a.Refresh()
	require.NoError(t, err)
	reach()
	follows(true)
	follows(false)
	reach()
	require.Equal(t, a.AccountKeys().Signer.Public(), b.AccountKeys().Signer.Public())
	require.NoFileExists(t, filepath.Join(dir, "sa-next.key"))
	require.Equal(t, a.CA(), b.CA())

	_, err = Renew(first, []string{"ca"}, time.Now().Add(time.Hour), 0) // signed again
	require.NoError(t, err)
	follows(true)
	before := readAll(t, late)
	_, err = follow(late)
	require.ErrorIs(t, err, ErrRotation)
	require.ErrorContains(t, err, "join anew")
	require.Equal(t, before, readAll(t, late))
	_, err = os.Stat(late + ".followed")
	require.Error(t, err)
}
