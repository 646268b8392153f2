package pki

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"kontiki/internal/filelock"
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
	// CertificateLife is how long a new certificate is good for. Default one year. Authorities last for ten.
	CertificateLife time.Duration
	// Now is the clock, also that of TLS handshakes. Default time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	if o.ServiceIP == nil {
		o.ServiceIP = net.IPv4(10, 96, 0, 1)
	}
	if o.ClusterDomain == "" {
		o.ClusterDomain = "cluster.local"
	}
	if o.CertificateLife == 0 {
		o.CertificateLife = certificateLife
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// PKI is an open directory of keys and certificates. Its methods may be called from several goroutines.
type PKI struct {
	dir     string
	opts    Options
	current atomic.Pointer[snapshot]

	mu    sync.Mutex          // guards nodes, and is held while files are read and written: one at a time
	nodes map[string][]net.IP // those whose certificates are kept, by name (Node)

	wake chan struct{} // has room for one: Keep looks at the files
}

// Open reads the directory and creates what is missing. The first time it is built under another
// name and then renamed, so that a crash leaves either everything or nothing.
func Open(dir string, opts Options) (*PKI, error) {
	opts = opts.withDefaults()
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := createAside(dir, opts); err != nil {
			return nil, fmt.Errorf("pki: create %s: %w", dir, err)
		}
	}
	p := &PKI{dir: dir, opts: opts, nodes: map[string][]net.IP{}, wake: make(chan struct{}, 1)}
	if _, err := p.Refresh(); err != nil {
		return nil, err
	}
	return p, nil
}

func createAside(dir string, opts Options) error {
	aside := dir + ".new"
	if err := os.RemoveAll(aside); err != nil { // left by a crash; nothing was ever signed with it
		return err
	}
	if err := os.MkdirAll(aside, 0o700); err != nil {
		return err
	}
	if _, err := load(aside, opts, nil); err != nil {
		return err
	}
	if err := os.Rename(aside, dir); err != nil {
		return err
	}
	return syncDir(filepath.Dir(dir))
}

// Refresh reads the directory again, issues what is missing or due, and takes it into use. It says whether anything has
// changed. After an error what was in use before stays so.
func (p *PKI) Refresh() (changed bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refresh()
}

func (p *PKI) refresh() (changed bool, err error) {
	unlock, err := lock(p.dir)
	if err != nil {
		return false, fmt.Errorf("pki: %w", err)
	}
	defer unlock()
	fresh, err := load(p.dir, p.opts, p.nodes)
	if err != nil {
		return false, fmt.Errorf("pki: %w", err)
	}
	if old := p.current.Load(); old != nil && old.digest == fresh.digest {
		return false, nil
	}
	p.current.Store(fresh)
	return true, nil
}

// lock keeps this process and `kontiki certs` from writing at the same time.
func lock(dir string) (unlock func(), err error) {
	f, err := filelock.Lock(filepath.Join(dir, ".lock"))
	if err != nil {
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}

// Dir is where the files are.
func (p *PKI) Dir() string { return p.dir }

// CA is what clients trust, in PEM, and kube-root-ca.crt: the certificate of the cluster's authority, and during a
// rotation behind it that of the old one.
func (p *PKI) CA() []byte { return p.current.Load().cluster.bundle }

// FrontProxyCA is the same of the front proxy's authority.
func (p *PKI) FrontProxyCA() []byte { return p.current.Load().frontProxy.bundle }

// ClusterID is the cluster's name for itself: 64 hexadecimal digits that all its servers share, and nobody else has.
func (p *PKI) ClusterID() string { return p.current.Load().clusterID }

// AccountKeys are the keys of service-account tokens.
func (p *PKI) AccountKeys() AccountKeys { return p.current.Load().accounts }

// Client is the key pair of one of the identities Admin, ControllerManager and Scheduler.
func (p *PKI) Client(identity string) *KeyPair { return p.current.Load().pairs[identity] }

// Node returns a node's two certificates, issuing them if needed, and has Keep renew them from now on: client is how its
// agent calls the API server (system:node:NAME in system:nodes), serving is how the agent is called.
func (p *PKI) Node(name string, ips []net.IP) (client, serving *KeyPair, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nodes[name] = ips
	if _, err := p.refresh(); err != nil {
		delete(p.nodes, name)
		return nil, nil, err
	}
	s := p.current.Load()
	return s.pairs[nodeClient(name)], s.pairs[nodeServing(name)], nil
}
