package pki

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
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
	// Ingress is kontiki:ingress, who serves Ingresses; not one of Kubernetes' own.
	Ingress = "ingress"

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

func (s *snapshot) certificates(o Options) []certificate {
	serving := func(user string) profile {
		return profile{user: user, usage: asServer, names: o.hostNames(), ips: o.hostIPs()}
	}
	client := func(user string, groups ...string) profile {
		return profile{user: user, groups: groups, usage: asClient}
	}
	return []certificate{
		{apiServing, s.cluster, o.apiServingProfile()},
		{apiAgentClient, s.cluster, client("kube-apiserver-kubelet-client", "system:kontiki")},
		{Admin, s.cluster, client("kubernetes-admin", "system:masters")},
		{ControllerManager, s.cluster, client("system:kube-controller-manager")},
		{Scheduler, s.cluster, client("system:kube-scheduler")},
		{Ingress, s.cluster, client("kontiki:ingress")},
		{storeServing, s.store, serving("kontiki-store")},
		{storePeer, s.store, o.peerProfile()},
		{storeClient, s.store, client("kontiki-store-client")},
		{frontProxyClient, s.frontProxy, client("front-proxy-client")},
	}
}

// A node's certificates are in a directory of its own.
func nodeDir(name string) string     { return filepath.Join("nodes", name) }
func nodeClient(name string) string  { return filepath.Join(nodeDir(name), "client") }
func nodeServing(name string) string { return filepath.Join(nodeDir(name), "serving") }

func (s *snapshot) nodeCertificates(name string, ips []net.IP) []certificate {
	user, groups := "system:node:"+name, []string{"system:nodes"}
	return []certificate{
		{nodeClient(name), s.cluster, profile{user: user, groups: groups, usage: asClient}},
		{nodeServing(name), s.cluster, profile{user: user, groups: groups, usage: asServer,
			names: []string{name, localhost}, ips: append([]net.IP{net.IPv4(127, 0, 0, 1)}, ips...)}},
	}
}

// peerProfile is for this machine alone. The other members know it by these names, and check them on both ends of a
// connection: with localhost and its addresses in it, each member's certificate would be good for any other's.
func (o Options) peerProfile() profile {
	peer := profile{user: "kontiki-store-peer", usage: asPeer, ips: o.NodeIPs}
	if o.NodeName != "" {
		peer.names = []string{o.NodeName}
	}
	if o.NodeName != localhost {
		peer.never = []string{localhost}
	}
	return peer
}

const localhost = "localhost"

func (o Options) hostNames() []string {
	names := []string{localhost}
	if o.NodeName != "" {
		names = append(names, o.NodeName)
	}
	return names
}

func (o Options) hostIPs() []net.IP {
	return append([]net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}, o.NodeIPs...)
}

// apiServingProfile has every name under which a client may call the API server: from this machine,
// from another, and from a pod through the kubernetes Service.
func (o Options) apiServingProfile() profile {
	names := append(o.hostNames(), "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc."+o.ClusterDomain)
	ips := append(o.hostIPs(), o.ServiceIP)
	for _, san := range o.SANs {
		if ip := net.ParseIP(san); ip != nil {
			ips = append(ips, ip)
		} else {
			names = append(names, san)
		}
	}
	return profile{user: "kube-apiserver", usage: asServer, names: names, ips: ips}
}
