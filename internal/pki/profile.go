package pki

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
)

// profile is what a certificate says: who its holder is (CN the user, O the groups) and where it
// may be shown.
type profile struct {
	user   string
	groups []string
	usage  []x509.ExtKeyUsage
	names  []string
	ips    []net.IP
	never  []string // names that it must not have
}

var (
	asClient = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	asServer = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	asPeer   = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
)

func (p profile) template() *x509.Certificate {
	return &x509.Certificate{
		Subject:               pkix.Name{CommonName: p.user, Organization: p.groups},
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           p.usage,
		BasicConstraintsValid: true,
		DNSNames:              p.names,
		IPAddresses:           p.ips,
	}
}

// satisfiedBy reports whether cert names the same holder and at least the same places. A name too
// many does no harm, unless it is one that everybody would have: an address that a machine has lost may come back.
func (p profile) satisfiedBy(cert *x509.Certificate) bool {
	if cert.Subject.CommonName != p.user || !slices.Equal(cert.Subject.Organization, p.groups) {
		return false
	}
	if slices.ContainsFunc(p.never, func(name string) bool { return slices.Contains(cert.DNSNames, name) }) {
		return false
	}
	for _, name := range p.names {
		if !slices.Contains(cert.DNSNames, name) {
			return false
		}
	}
	for _, ip := range p.ips {
		if !slices.ContainsFunc(cert.IPAddresses, ip.Equal) {
			return false
		}
	}
	return true
}

// The identities of the parts of a cluster, as file names. Their users are Kubernetes' own, so that
// its default roles fit them.
const (
	// Admin is kubernetes-admin in system:masters.
	Admin = "admin"
	// ControllerManager is system:kube-controller-manager.
	ControllerManager = "controller-manager"
	// Scheduler is system:kube-scheduler.
	Scheduler = "scheduler"

	apiServing       = "apiserver"
	apiAgentClient   = "apiserver-kubelet-client"
	storeServing     = "store-server"
	storePeer        = "store-peer"
	storeClient      = "store-client"
	frontProxyClient = "front-proxy-client"
)

// certificate is one row of what every server has.
type certificate struct {
	name string
	*authority
	profile
}

func (p *PKI) certificates() []certificate {
	serving := func(user string) profile {
		return profile{user: user, usage: asServer, names: p.hostNames(), ips: p.hostIPs()}
	}
	client := func(user string, groups ...string) profile {
		return profile{user: user, groups: groups, usage: asClient}
	}
	return []certificate{
		{apiServing, p.cluster, p.apiServingProfile()},
		{apiAgentClient, p.cluster, client("kube-apiserver-kubelet-client", "system:kontiki")},
		{Admin, p.cluster, client("kubernetes-admin", "system:masters")},
		{ControllerManager, p.cluster, client("system:kube-controller-manager")},
		{Scheduler, p.cluster, client("system:kube-scheduler")},
		{storeServing, p.store, serving("kontiki-store")},
		{storePeer, p.store, p.peerProfile()},
		{storeClient, p.store, client("kontiki-store-client")},
		{frontProxyClient, p.frontProxy, client("front-proxy-client")},
	}
}

// peerProfile is for this machine alone. The other members know it by these names, and check them on both ends of a
// connection: with localhost and its addresses in it, each member's certificate would be good for any other's.
func (p *PKI) peerProfile() profile {
	peer := profile{user: "kontiki-store-peer", usage: asPeer, ips: p.opts.NodeIPs}
	if p.opts.NodeName != "" {
		peer.names = []string{p.opts.NodeName}
	}
	if p.opts.NodeName != localhost {
		peer.never = []string{localhost}
	}
	return peer
}

const localhost = "localhost"

func (p *PKI) hostNames() []string {
	names := []string{localhost}
	if p.opts.NodeName != "" {
		names = append(names, p.opts.NodeName)
	}
	return names
}

func (p *PKI) hostIPs() []net.IP {
	return append([]net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}, p.opts.NodeIPs...)
}

// apiServingProfile has every name under which a client may call the API server: from this machine,
// from another, and from a pod through the kubernetes Service.
func (p *PKI) apiServingProfile() profile {
	names := append(p.hostNames(), "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc."+p.opts.ClusterDomain)
	ips := append(p.hostIPs(), p.opts.ServiceIP)
	for _, san := range p.opts.SANs {
		if ip := net.ParseIP(san); ip != nil {
			ips = append(ips, ip)
		} else {
			names = append(names, san)
		}
	}
	return profile{user: "kube-apiserver", usage: asServer, names: names, ips: ips}
}

// Node returns a node's two certificates, issuing them if needed: client is how its agent calls the
// API server (system:node:NAME in system:nodes), serving is how the agent is called.
func (p *PKI) Node(name string, ips []net.IP) (client, serving *KeyPair, err error) {
	dir := filepath.Join(p.dir, "nodes", name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("pki: %w", err)
	}
	user := "system:node:" + name
	client, err = p.cluster.pair(filepath.Join(dir, "client"),
		profile{user: user, groups: []string{"system:nodes"}, usage: asClient}, p.opts.Now())
	if err != nil {
		return nil, nil, fmt.Errorf("pki: %w", err)
	}
	serving, err = p.cluster.pair(filepath.Join(dir, "serving"), profile{user: user, groups: []string{"system:nodes"},
		usage: asServer, names: []string{name, localhost}, ips: append([]net.IP{net.IPv4(127, 0, 0, 1)}, ips...)}, p.opts.Now())
	if err != nil {
		return nil, nil, fmt.Errorf("pki: %w", err)
	}
	return client, serving, nil
}
