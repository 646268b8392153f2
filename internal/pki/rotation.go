package pki

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// An authority is replaced in two steps, between which nobody is locked out, whoever trusts what:
//
//	                 signs   trusted    issued certificates bring along
//	before           old     old        nothing
//	rotate start     new     new, old   the new one's certificate, signed by the old one (path-cross.crt)
//	rotate finish    new     new        nothing
//
// Who trusts only the old authority verifies a new certificate through the cross certificate (RFC 4158, 1.5: a key
// rollover certificate); who trusts both verifies old ones too. So machines can follow one after the other, and running
// requests go on. The old key is gone from the first step on: nothing needs it.
//
// The key of service-account tokens takes the same steps. A cross signature does not exist for it, so the new one
// verifies from the first step on, on all servers, and signs from the second; the old one then goes on verifying, from
// sa-old.pub, until somebody removes that file.
//
// In a directory, the first step of an authority is done when path-old.crt is there: what a crash left undone after that
// is finished by the next who opens it (finishSwitch), what it had begun before is dropped.

func oldAuthority(path string) string     { return path + "-old.crt" }
func crossCertificate(path string) string { return path + "-cross.crt" }
func nextAuthority(path string) string    { return path + "-next" }

// Rotatable are the names that StartRotation and FinishRotation take.
func Rotatable() []string {
	names := []string{accountKey}
	for _, a := range authorities {
		names = append(names, a.file)
	}
	return names
}

// StartRotation makes new authorities, or a new key of service-account tokens, for those of the names Rotatable, and
// issues all certificates again. A running server takes them into use with its next look.
func StartRotation(dir string, names []string, now time.Time) error {
	unlock, err := lock(dir)
	if err != nil {
		return fmt.Errorf("pki: %w", err)
	}
	defer unlock()
	for _, name := range names { // all or none
		if err := mayStart(dir, name, now); err != nil {
			return fmt.Errorf("pki: %w", err)
		}
	}
	for _, name := range names {
		if name == accountKey {
			_, err = openSigningKey(filepath.Join(dir, nextAccountKey))
		} else {
			err = switchAuthority(filepath.Join(dir, name), now)
		}
		if err != nil {
			return fmt.Errorf("pki: %w", err)
		}
	}
	_, err = renew(dir, nil, now, certificateLife)
	return err
}

func mayStart(dir, name string, now time.Time) error {
	path := filepath.Join(dir, name)
	if !slices.Contains(Rotatable(), name) {
		return fmt.Errorf("%w: %q is none of %v", ErrRotation, name, Rotatable())
	}
	if name == accountKey {
		if exists(filepath.Join(dir, nextAccountKey) + ".key") {
			return fmt.Errorf("%w: %s-next.key is there: that of this key has begun already, finish it first", ErrRotation, path)
		}
		_, err := readKeyFile(path + ".key")
		return err
	}
	if err := finishSwitch(path); err != nil {
		return err
	}
	if exists(oldAuthority(path)) {
		return fmt.Errorf("%w: %s is there: that of this authority has begun already, finish it first", ErrRotation, oldAuthority(path))
	}
	a, err := readAuthority(path)
	switch {
	case err != nil:
		return err
	case now.After(a.cert.NotAfter):
		return fmt.Errorf("%s.crt: %w on %s: renew it first", path, ErrExpired, a.cert.NotAfter.Format(time.DateOnly))
	case a.cert.MaxPathLen == 0 && a.cert.MaxPathLenZero:
		return fmt.Errorf("%w: %s.crt permits no authority below it, so it cannot vouch for a new one", ErrRotation, path)
	}
	return nil
}

// switchAuthority is the first step.
func switchAuthority(path string, now time.Time) error {
	old, err := readAuthority(path)
	if err != nil {
		return err
	}
	key, err := newKey()
	if err != nil {
		return err
	}
	template := authorityTemplate(fmt.Sprintf("kontiki-%s@%d", filepath.Base(path), now.Unix()), now)
	root, err := sign(template, template, key.Public(), key)
	if err != nil {
		return fmt.Errorf("sign %s: %w", path, err)
	}
	if template.NotAfter.After(old.cert.NotAfter) {
		template.NotAfter = old.cert.NotAfter
	}
	cross, err := sign(template, old.cert, key.Public(), old.key)
	if err != nil {
		return fmt.Errorf("sign %s: %w", path, err)
	}
	for _, write := range []func() error{
		func() error { return writePair(nextAuthority(path), key, encodeCertificate(root)) },
		func() error { return writeFile(crossCertificate(path), encodeCertificate(cross)) },
		func() error { return writeFile(oldAuthority(path), old.bundle) },
		func() error { return finishSwitch(path) },
	} {
		if err := write(); err != nil {
			return err
		}
	}
	return nil
}

// finishSwitch puts a new authority in its place if path-old.crt is there, and otherwise drops what a crash has left of one.
func finishSwitch(path string) error {
	next := nextAuthority(path)
	if !exists(oldAuthority(path)) {
		return remove(next+".crt", next+".key", crossCertificate(path))
	}
	for _, ending := range []string{".key", ".crt"} { // a crash between the two leaves the second to do
		if err := os.Rename(next+ending, path+ending); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return syncDir(filepath.Dir(path))
}

func remove(paths ...string) error {
	for _, path := range paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Rotating are those of the names Rotatable whose rotation has begun.
func Rotating(dir string) []string {
	var names []string
	for _, name := range Rotatable() {
		path := filepath.Join(dir, name)
		if exists(oldAuthority(path)) || name == accountKey && exists(nextAuthority(path)+".key") {
			names = append(names, name)
		}
	}
	return names
}

// NewRoots is the pool with the new certificate of the cluster's authority alone: who shows a certificate that this
// verifies does not need the old one any more.
func NewRoots(dir string) (*x509.CertPool, error) {
	a, err := readAuthority(filepath.Join(dir, authorities[0].file))
	if err != nil {
		return nil, fmt.Errorf("pki: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool, nil
}

// FinishRotation drops the old authorities, and has the new key of service-account tokens sign. It refuses, and changes
// nothing, while a certificate in the directory is signed by an old authority. What is elsewhere the caller has to know.
func FinishRotation(dir string, names []string, now time.Time) error {
	unlock, err := lock(dir)
	if err != nil {
		return fmt.Errorf("pki: %w", err)
	}
	defer unlock()
	rotating := Rotating(dir)
	for _, name := range names {
		if !slices.Contains(rotating, name) {
			return fmt.Errorf("pki: %w: that of %s has not begun", ErrRotation, name)
		}
		if name == accountKey {
			continue
		}
		if left, err := signedByOld(dir, name); err != nil || len(left) > 0 {
			return fmt.Errorf("pki: %w: signed by the old authority still: %v: renew them first", errors.Join(ErrRotation, err), left)
		}
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if name == accountKey {
			err = retireAccountKey(dir)
		} else {
			err = remove(oldAuthority(path), crossCertificate(path))
		}
		if err != nil {
			return fmt.Errorf("pki: %w", err)
		}
	}
	if err := syncDir(dir); err != nil {
		return fmt.Errorf("pki: %w", err)
	}
	_, err = renew(dir, nil, now, certificateLife) // without the cross certificates
	return err
}

// signedByOld are the certificates that finishing would make worthless.
func signedByOld(dir, name string) ([]string, error) {
	a, err := readAuthority(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	var left []string
	err = eachPair(dir, func(file string, pair *KeyPair) error {
		if !a.signed(pair.leaf) && a.trusts(pair.leaf) {
			left = append(left, file)
		}
		return nil
	})
	return left, err
}

// retireAccountKey has sa-next.key sign. After a crash sa-old.pub may name a key that signs still, which does no harm.
func retireAccountKey(dir string) error {
	path, next := filepath.Join(dir, accountKey), filepath.Join(dir, nextAccountKey)
	retired, err := os.ReadFile(path + ".pub")
	if err != nil {
		return err
	}
	older, err := os.ReadFile(filepath.Join(dir, oldAccountKeys))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := writeFile(filepath.Join(dir, oldAccountKeys), append(retired, older...)); err != nil {
		return err
	}
	if err := os.Rename(next+".key", path+".key"); err != nil {
		return err
	}
	return os.Rename(next+".pub", path+".pub")
}
