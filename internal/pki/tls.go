package pki

import (
	"crypto/tls"
	"crypto/x509"
)

// The configurations below are new on each call: the caller may change its copy.

// APIServing is for the API server: a client may show a certificate of the cluster authority, and
// one that it shows must be good.
func (p *PKI) APIServing() *tls.Config {
	return serverConfig(p.pairs[apiServing], p.cluster.pool, tls.VerifyClientCertIfGiven)
}

// AgentClient is how the API server calls node agents.
func (p *PKI) AgentClient() *tls.Config {
	return clientConfig(p.pairs[apiAgentClient], p.cluster.pool)
}

// AgentServing is how the agent with this serving certificate is called: only by holders of a
// certificate of the cluster authority.
func (p *PKI) AgentServing(serving *KeyPair) *tls.Config {
	return serverConfig(serving, p.cluster.pool, tls.RequireAndVerifyClientCert)
}

// StorePeer is both ends of a connection between store members.
func (p *PKI) StorePeer() *tls.Config {
	config := serverConfig(p.pairs[storePeer], p.store.pool, tls.RequireAndVerifyClientCert)
	config.RootCAs = p.store.pool
	return config
}

// StoreServing is for the store's etcd API: every client must show a certificate of the store authority.
func (p *PKI) StoreServing() *tls.Config {
	return serverConfig(p.pairs[storeServing], p.store.pool, tls.RequireAndVerifyClientCert)
}

// StoreClient is how the store's etcd API is called.
func (p *PKI) StoreClient() *tls.Config {
	return clientConfig(p.pairs[storeClient], p.store.pool)
}

// Client is the key pair of one of the identities Admin, ControllerManager and Scheduler.
func (p *PKI) Client(identity string) *KeyPair { return p.pairs[identity] }

func serverConfig(pair *KeyPair, clients *x509.CertPool, auth tls.ClientAuthType) *tls.Config {
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{pair.certificate},
		ClientCAs:    clients,
		ClientAuth:   auth,
	}
}

func clientConfig(pair *KeyPair, roots *x509.CertPool) *tls.Config {
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{pair.certificate},
		RootCAs:      roots,
	}
}
