package pki

import (
	"crypto/sha256"
	"net"
	"os"
	"path/filepath"
)

// snapshot is what the directory held at one time. It does not change.
type snapshot struct {
	cluster, store, frontProxy *authority

	accounts  AccountKeys
	clusterID string
	pairs     map[string]*KeyPair // by file name without its ending

	digest [sha256.Size]byte // of everything above: two with the same one are the same
}

// authorities are the three, by file name, with the names that new ones get.
var authorities = []struct{ file, commonName string }{
	{"ca", "kontiki-ca"}, {"store-ca", "kontiki-store-ca"}, {"front-proxy-ca", "kontiki-front-proxy-ca"},
}

// load reads a directory, whose lock is held or that nobody else knows, and issues what is missing or due.
func load(dir string, opts Options, nodes map[string][]net.IP) (*snapshot, error) {
	s := &snapshot{pairs: map[string]*KeyPair{}}
	now := opts.Now()
	for i, into := range []**authority{&s.cluster, &s.store, &s.frontProxy} {
		a, err := openAuthority(filepath.Join(dir, authorities[i].file), authorities[i].commonName, now)
		if err != nil {
			return nil, err
		}
		*into = a
	}
	var err error
	if s.accounts, err = openAccountKeys(dir); err != nil {
		return nil, err
	}
	if s.clusterID, err = openClusterID(dir, s.cluster); err != nil {
		return nil, err
	}
	rows := s.certificates(opts)
	for name, ips := range nodes {
		if err := os.MkdirAll(filepath.Join(dir, nodeDir(name)), 0o700); err != nil {
			return nil, err
		}
		rows = append(rows, s.nodeCertificates(name, ips)...)
	}
	for _, c := range rows {
		if s.pairs[c.name], err = c.authority.pair(filepath.Join(dir, c.name), c.profile, now, opts.CertificateLife); err != nil {
			return nil, err
		}
	}
	s.pairs[apiServing] = s.pairs[apiServing].bringing(s.cluster.trusted)
	s.digest = s.sum(rows)
	return s, nil
}

func (s *snapshot) sum(rows []certificate) (digest [sha256.Size]byte) {
	hash := sha256.New()
	for _, a := range []*authority{s.cluster, s.store, s.frontProxy} {
		hash.Write(a.bundle)
		hash.Write(a.cross)
	}
	for _, key := range append(s.accounts.Others, s.accounts.Signer.Public()) {
		text, _ := encodePublicKey(key) // it was decoded before
		hash.Write(text)
	}
	for _, c := range rows {
		hash.Write(s.pairs[c.name].CertPEM)
	}
	return [sha256.Size]byte(hash.Sum(nil))
}
