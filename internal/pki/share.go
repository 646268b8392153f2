package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// What the servers of a cluster share: the authorities with their keys, also during a rotation, the keys of tokens, and the
// cluster's name. Each server issues its own certificates with these.

// shared are the names of the files.
func shared() []string {
	names := []string{clusterIDFile, oldAccountKeys}
	for _, a := range authorities {
		names = append(names, a.file+".crt", a.file+".key", filepath.Base(oldAuthority(a.file)), filepath.Base(crossCertificate(a.file)))
	}
	for _, key := range []string{accountKey, nextAccountKey} {
		names = append(names, key+".key", key+".pub")
	}
	return names
}

// Export returns what another server of the cluster needs, by file name. It is the cluster's most secret secret.
func Export(dir string) (map[string][]byte, error) {
	unlock, err := lock(dir)
	if err != nil {
		return nil, fmt.Errorf("pki: %w", err)
	}
	defer unlock()
	files := map[string][]byte{}
	for _, name := range shared() {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("pki: %w", err)
		}
		files[name] = data
	}
	return files, nil
}

// Import makes the directory of a server that joins from what Export returned elsewhere. There must not be one yet. A crash
// leaves all of it or nothing; an error leaves nothing.
func Import(dir string, files map[string][]byte) error {
	if exists(dir) {
		return fmt.Errorf("pki: %s is there already", dir)
	}
	aside := dir + ".new"
	if err := errors.Join(os.RemoveAll(aside), os.MkdirAll(aside, 0o700)); err != nil {
		return fmt.Errorf("pki: %w", err)
	}
	defer os.RemoveAll(aside)
	if err := writeShared(aside, files); err != nil {
		return fmt.Errorf("pki: %w", err)
	}
	if err := checkShared(aside); err != nil {
		return fmt.Errorf("pki: what was received: %w", err)
	}
	if err := os.Rename(aside, dir); err != nil {
		return fmt.Errorf("pki: %w", err)
	}
	return syncDir(filepath.Dir(dir))
}

func writeShared(dir string, files map[string][]byte) error {
	for name, data := range files {
		if !slices.Contains(shared(), name) {
			return fmt.Errorf("%w: %q is not a file that servers share", ErrDamaged, name)
		}
		if err := writeFile(filepath.Join(dir, name), data); err != nil {
			return err
		}
	}
	return nil
}

// checkShared says whether everything that a server shares is there and whole.
func checkShared(dir string) error {
	for _, a := range authorities {
		if _, err := readAuthority(filepath.Join(dir, a.file)); err != nil {
			return err
		}
	}
	if !exists(filepath.Join(dir, accountKey) + ".key") {
		return fmt.Errorf("%s.key: %w", accountKey, fs.ErrNotExist)
	}
	_, err := openAccountKeys(dir)
	return err
}

// Follow takes over in a server's directory what another server of the cluster has exported: the steps of a rotation, in
// their order, or authorities that were signed again. It says whether anything was new. A server that has missed a whole
// rotation cannot follow, since nobody vouches for the new authority: it has to join anew.
func Follow(dir string, files map[string][]byte) (changed bool, err error) {
	unlock, err := lock(dir)
	if err != nil {
		return false, fmt.Errorf("pki: %w", err)
	}
	defer unlock()
	there := dir + ".followed"
	if err := errors.Join(os.RemoveAll(there), os.MkdirAll(there, 0o700)); err != nil {
		return false, fmt.Errorf("pki: %w", err)
	}
	defer os.RemoveAll(there)
	if err := errors.Join(writeShared(there, files), checkShared(there)); err != nil {
		return false, fmt.Errorf("pki: what was received: %w", err)
	}
	for _, a := range authorities {
		one, err := followAuthority(filepath.Join(dir, a.file), filepath.Join(there, a.file))
		if err != nil {
			return changed, fmt.Errorf("pki: %w", err)
		}
		changed = changed || one
	}
	// The keys of tokens are files that stand for themselves; the one that signs comes last.
	for _, name := range []string{oldAccountKeys, nextAccountKey + ".key", nextAccountKey + ".pub", accountKey + ".pub", accountKey + ".key"} {
		one, err := followFile(filepath.Join(dir, name), files[name])
		if err != nil {
			return changed, fmt.Errorf("pki: %w", err)
		}
		changed = changed || one
	}
	return changed, nil
}

func followFile(path string, wanted []byte) (changed bool, err error) {
	present, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	switch {
	case bytes.Equal(present, wanted):
		return false, nil
	case wanted == nil:
		return true, remove(path)
	default:
		return true, writeFile(path, wanted)
	}
}

func followAuthority(path, from string) (changed bool, err error) {
	if err := finishSwitch(path); err != nil {
		return false, err
	}
	ours, err := readAuthority(path)
	if err != nil {
		return false, err
	}
	theirs, err := readAuthority(from)
	if err != nil {
		return false, err
	}
	switch {
	case bytes.Equal(ours.bundle, theirs.bundle) && bytes.Equal(ours.cross, theirs.cross):
		return false, nil
	case HashOf(ours.cert) == HashOf(theirs.cert) && !exists(oldAuthority(from)): // finished there, or signed again
		return true, errors.Join(followed(path+".crt", theirs.cert.Raw), remove(oldAuthority(path), crossCertificate(path)))
	case !theirs.trustsKeyOf(ours):
		return false, fmt.Errorf("%w: %s.crt is of an authority that the other server does not know any more: move the directory away and join anew", ErrRotation, path)
	}
	for _, write := range []func() error{
		func() error { return writePair(nextAuthority(path), theirs.key, encodeCertificate(theirs.cert.Raw)) },
		func() error { return writeFile(crossCertificate(path), theirs.cross) },
		func() error { return writeFile(oldAuthority(path), EncodeCertificates(theirs.trusted[1:])) },
		func() error { return finishSwitch(path) },
	} {
		if err := write(); err != nil {
			return false, err
		}
	}
	return true, nil
}

func followed(path string, der []byte) error { return writeFile(path, encodeCertificate(der)) }

// trustsKeyOf says whether the certificates that an authority trusts include one of another's key.
func (a *authority) trustsKeyOf(other *authority) bool {
	for _, c := range a.trusted {
		if HashOf(c) == HashOf(other.cert) {
			return true
		}
	}
	return false
}

// AdminOf is the administrator's certificate in a directory, and whom it goes with to trust: for a stopped server.
func AdminOf(dir string) (admin *KeyPair, ca []byte, err error) {
	a, err := readAuthority(filepath.Join(dir, authorities[0].file))
	if err == nil {
		admin, err = readPair(filepath.Join(dir, Admin))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("pki: %w", err)
	}
	return admin, a.bundle, nil
}

// AdminTLS is how the administrator of a directory calls an API server.
func AdminTLS(dir string) (*tls.Config, error) {
	admin, ca, err := AdminOf(dir)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return clientConfig(admin, pool, Options{}), nil
}
