package pki

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/internal/livetls"
)

// counter is a slog.Handler that counts errors.
type counter struct {
	slog.Handler
	errors atomic.Int64
}

func (*counter) Enabled(context.Context, slog.Level) bool { return true }
func (c *counter) Handle(_ context.Context, r slog.Record) error {
	if r.Level == slog.LevelError {
		c.errors.Add(1)
	}
	return nil
}

// TestRotationUnderTraffic: clients that follow, clients that know the old authority only, and those that come and go,
// call all the time; none of their requests fails until the old authority is dropped, and then only who has not followed.
func TestRotationUnderTraffic(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	p, err := Open(dir, Options{})
	require.NoError(t, err)
	s := serve(t, p)
	outdated := livetls.Static(p.APIClient(Admin)) // an old kubeconfig
	following := p.Live(func() *tls.Config { return p.APIClient(Scheduler) })
	stop, failures := make(chan struct{}), make(chan error, 100)
	var calls atomic.Int64
	var running sync.WaitGroup
	for _, source := range []livetls.Source{outdated, following, following} {
		kept := caller(source)
		for _, client := range []func() *http.Client{func() *http.Client { return kept }, func() *http.Client { return caller(source) }} {
			running.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					c := client()
					if _, _, _, err := s.call(c); err != nil {
						failures <- err
						return
					}
					if c != kept {
						c.CloseIdleConnections()
					}
					calls.Add(1)
				}
			})
		}
	}
	more := func() {
		from := calls.Load()
		require.Eventually(t, func() bool { return calls.Load() > from+100 || len(failures) > 0 }, time.Minute, time.Millisecond)
	}
	more()
	before := p.Hash()
	require.NoError(t, StartRotation(dir, []string{"ca", "store-ca"}, time.Now()))
	require.Equal(t, []string{"ca", "store-ca"}, Rotating(dir))
	changed, err := p.Refresh()
	require.NoError(t, err)
	require.True(t, changed)
	require.NotEqual(t, before, p.Hash())
	more()
	_, _, serving, err := s.call(caller(following))
	require.NoError(t, err)
	roots, err := NewRoots(dir)
	require.NoError(t, err)
	_, err = serving.Verify(x509.VerifyOptions{Roots: roots})
	require.NoError(t, err, "the new authority signs")
	require.ErrorIs(t, StartRotation(dir, []string{"ca"}, time.Now()), ErrRotation, "once at a time")
	more()
	close(stop)
	running.Wait()
	select {
	case err := <-failures:
		t.Fatal(err)
	default:
	}

	require.NoError(t, FinishRotation(dir, []string{"ca", "store-ca"}, time.Now()))
	require.Empty(t, Rotating(dir))
	_, err = p.Refresh()
	require.NoError(t, err)
	_, _, _, err = s.call(caller(following))
	require.NoError(t, err)
	_, _, _, err = s.call(caller(outdated))
	require.Error(t, err)
	requireAllGood(t, dir, time.Now())
	require.ErrorIs(t, FinishRotation(dir, []string{"ca"}, time.Now()), ErrRotation)
	list, err := parseCertificates(p.CA())
	require.NoError(t, err)
	require.Len(t, list, 1)
}

// Finishing is refused while something here depends on the old authority, and then has changed nothing.
func TestFinishIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	p, err := Open(dir, Options{})
	require.NoError(t, err)
	admin := p.Client(Admin)
	require.NoError(t, StartRotation(dir, []string{"ca"}, time.Now()))
	require.NoError(t, writePair(filepath.Join(dir, "admin"), admin.key(), admin.CertPEM)) // from a backup
	before := readAll(t, dir)
	err = FinishRotation(dir, []string{"ca"}, time.Now())
	require.ErrorIs(t, err, ErrRotation)
	require.ErrorContains(t, err, "[admin]")
	require.Equal(t, before, readAll(t, dir))
	require.Equal(t, "signed by the old authority", stateOf(t, dir, "admin.crt"))
	_, err = p.Refresh()
	require.NoError(t, err)
	require.NoError(t, FinishRotation(dir, []string{"ca"}, time.Now()))
}

// A crash at any point of the first step leaves a directory that opens, with the old or the new authority.
func TestCrashWhileRotating(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "pki")
	p, err := Open(whole, Options{})
	require.NoError(t, err)
	old := readAll(t, whole)
	hash := p.Hash()
	require.NoError(t, StartRotation(whole, []string{"ca"}, time.Now()))
	done := readAll(t, whole)
	newKey, newCert, cross, oldCert := done["ca.key"], done["ca.crt"], done["ca-cross.crt"], done["ca-old.crt"]
	require.Equal(t, old["ca.crt"], oldCert)
	for name, c := range map[string]struct {
		files    map[string]string
		switched bool
	}{
		"next key":         {map[string]string{"ca-next.key": newKey}, false},
		"next certificate": {map[string]string{"ca-next.key": newKey, "ca-next.crt": newCert}, false},
		"cross":            {map[string]string{"ca-next.key": newKey, "ca-next.crt": newCert, "ca-cross.crt": cross}, false},
		"old":              {map[string]string{"ca-next.key": newKey, "ca-next.crt": newCert, "ca-cross.crt": cross, "ca-old.crt": oldCert}, true},
		"first rename":     {map[string]string{"ca.key": newKey, "ca-next.crt": newCert, "ca-cross.crt": cross, "ca-old.crt": oldCert}, true},
		"second rename":    {map[string]string{"ca.key": newKey, "ca.crt": newCert, "ca-cross.crt": cross, "ca-old.crt": oldCert}, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, files := range []map[string]string{old, c.files} {
				for file, text := range files {
					require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
				}
			}
			p, err := Open(dir, Options{})
			require.NoError(t, err)
			require.Equal(t, c.switched, p.Hash() != hash)
			require.NoFileExists(t, filepath.Join(dir, "ca-next.key"))
			if c.switched {
				require.NoError(t, FinishRotation(dir, []string{"ca"}, time.Now()))
			} else {
				require.NoError(t, StartRotation(dir, []string{"ca"}, time.Now()))
			}
		})
	}
}

// A certificate whose key was written and which was not (a crash) is issued again; one whose key others can read is not used.
func TestPairsThatDoNotBelong(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	p, err := Open(dir, Options{})
	require.NoError(t, err)
	other, err := newKey()
	require.NoError(t, err)
	require.NoError(t, writeKey(filepath.Join(dir, "admin.key"), other))
	again, err := Open(dir, Options{})
	require.NoError(t, err)
	require.NotEqual(t, p.Client(Admin).KeyPEM, again.Client(Admin).KeyPEM)
	for _, name := range []string{"admin.key", "ca.key", "sa.key"} {
		require.NoError(t, os.Chmod(filepath.Join(dir, name), 0o644))
		before := readAll(t, dir)
		_, err = Open(dir, Options{})
		require.ErrorIs(t, err, ErrReadable)
		require.ErrorContains(t, err, name)
		require.ErrorContains(t, err, "chmod 600")
		require.Equal(t, before, readAll(t, dir))
		require.NoError(t, os.Chmod(filepath.Join(dir, name), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ca.key"), []byte(readAll(t, dir)["store-ca.key"]), 0o600))
	_, err = Open(dir, Options{})
	require.ErrorIs(t, err, ErrDamaged, "of an authority nothing is made anew")
}

// The new key of tokens verifies from the first step on and signs from the second; the old one verifies until its file goes.
func TestAccountKeyRotation(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	p, err := Open(dir, Options{})
	require.NoError(t, err)
	first := p.AccountKeys()
	require.Empty(t, first.Others)
	is := func(a, b any) bool { return a.(*ecdsa.PublicKey).Equal(b) }
	require.NoError(t, StartRotation(dir, []string{"sa"}, time.Now()))
	_, err = p.Refresh()
	require.NoError(t, err)
	both := p.AccountKeys()
	require.True(t, is(first.Signer.Public(), both.Signer.Public()))
	require.Len(t, both.Others, 1)
	require.ErrorIs(t, StartRotation(dir, []string{"sa"}, time.Now()), ErrRotation)
	require.NoError(t, FinishRotation(dir, []string{"sa"}, time.Now()))
	_, err = p.Refresh()
	require.NoError(t, err)
	last := p.AccountKeys()
	require.True(t, is(both.Others[0], last.Signer.Public()))
	require.Len(t, last.Others, 1)
	require.True(t, is(first.Signer.Public(), last.Others[0]))
	require.NoError(t, os.Remove(filepath.Join(dir, "sa-old.pub")))
	_, err = p.Refresh()
	require.NoError(t, err)
	require.Empty(t, p.AccountKeys().Others)
}

// Whoever signs for others (an organization's authority) cannot be signed again here, nor vouch for a new one if it may not.
func TestAuthoritiesOfOthers(t *testing.T) {
	dir := t.TempDir()
	key, err := newKey()
	require.NoError(t, err)
	template := authorityTemplate("acme", time.Now())
	template.MaxPathLenZero = true
	der, err := sign(template, template, key.Public(), key)
	require.NoError(t, err)
	require.NoError(t, writePair(filepath.Join(dir, "ca"), key, encodeCertificate(der)))
	_, err = Open(dir, Options{})
	require.NoError(t, err)
	before := readAll(t, dir)
	err = StartRotation(dir, []string{"store-ca", "ca"}, time.Now())
	require.ErrorIs(t, err, ErrRotation)
	require.ErrorContains(t, err, "permits no authority below it")
	require.Equal(t, before, readAll(t, dir), "all or none")
	_, err = Renew(dir, []string{"ca"}, time.Now(), 0)
	require.NoError(t, err)
	err = StartRotation(dir, []string{"ca"}, time.Now())
	require.True(t, errors.Is(err, ErrRotation), "it says the same as before")
	_, err = Renew(dir, []string{"nobody"}, time.Now(), 0)
	require.ErrorContains(t, err, "no certificate nobody")
}

func stateOf(t *testing.T, dir, file string) string {
	t.Helper()
	list, err := Inventory(dir, time.Now())
	require.NoError(t, err)
	for _, e := range list {
		if e.File == file {
			return e.State
		}
	}
	t.Fatal(file, " is not listed")
	return ""
}
