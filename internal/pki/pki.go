package pki

import (
	"crypto"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Options says whom the certificates are for.
type Options struct {
	// NodeName is the name of this machine; it becomes a name of the server certificates.
	NodeName string
	// NodeIPs are the addresses under which other machines reach this one.
	NodeIPs []net.IP
	// SANs are more names or addresses for the API server's certificate (--tls-san).
	SANs []string
	// ServiceIP is the cluster IP of the kubernetes Service. Default 10.96.0.1.
	ServiceIP net.IP
	// ClusterDomain is the DNS domain of Services. Default cluster.local.
	ClusterDomain string
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	if o.ServiceIP == nil {
		o.ServiceIP = net.IPv4(10, 96, 0, 1)
	}
	if o.ClusterDomain == "" {
		o.ClusterDomain = "cluster.local"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// PKI is an open directory of keys and certificates. It is read-only after Open, except that Node
// adds the certificates of further nodes; its methods may be called from several goroutines, Node
// by one at a time for one name.
type PKI struct {
	dir  string
	opts Options

	cluster, store, frontProxy *authority

	serviceAccountKey crypto.Signer
	pairs             map[string]*KeyPair // by file name without its ending
}

// Open reads the directory and creates what is missing. The first time it is built under another
// name and then renamed, so that a crash leaves either everything or nothing.
func Open(dir string, opts Options) (*PKI, error) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := createAside(dir, opts); err != nil {
			return nil, fmt.Errorf("pki: create %s: %w", dir, err)
		}
	}
	p, err := load(dir, opts.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("pki: %w", err)
	}
	return p, nil
}

func createAside(dir string, opts Options) error {
	aside := dir + ".new"
	if err := os.RemoveAll(aside); err != nil { // left by a crash; nothing was ever signed with it
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	if _, err := load(aside, opts.withDefaults()); err != nil {
		return err
	}
	if err := os.Rename(aside, dir); err != nil {
		return err
	}
	return syncDir(filepath.Dir(dir))
}

func load(dir string, opts Options) (*PKI, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	p := &PKI{dir: dir, opts: opts, pairs: map[string]*KeyPair{}}
	if err := p.loadAuthorities(); err != nil {
		return nil, err
	}
	for _, c := range p.certificates() {
		pair, err := c.authority.pair(filepath.Join(dir, c.name), c.profile, opts.Now())
		if err != nil {
			return nil, err
		}
		p.pairs[c.name] = pair
	}
	return p, nil
}

func (p *PKI) loadAuthorities() (err error) {
	now := p.opts.Now()
	if p.cluster, err = openAuthority(filepath.Join(p.dir, "ca"), "kontiki-ca", now); err != nil {
		return err
	}
	if p.store, err = openAuthority(filepath.Join(p.dir, "store-ca"), "kontiki-store-ca", now); err != nil {
		return err
	}
	if p.frontProxy, err = openAuthority(filepath.Join(p.dir, "front-proxy-ca"), "kontiki-front-proxy-ca", now); err != nil {
		return err
	}
	p.serviceAccountKey, err = openSigningKey(filepath.Join(p.dir, "sa"))
	return err
}

// Dir is where the files are.
func (p *PKI) Dir() string { return p.dir }

// CA is the cluster authority's certificate in PEM: what clients trust, and kube-root-ca.crt.
func (p *PKI) CA() []byte { return p.cluster.certPEM }

// ServiceAccountKey signs service-account tokens.
func (p *PKI) ServiceAccountKey() crypto.Signer { return p.serviceAccountKey }
