package pki

import (
	"crypto/tls"
	"crypto/x509"
	"sync"
)

// The configurations below are new on each call: the caller may change its copy.
//
// Those of servers look at the certificates again at each handshake, so that a renewed one is shown, and a new authority
// trusted, from the next connection on. Those of clients are as of the call: whoever dials asks for one each time.

// APIServing is for the API server: a client may show a certificate of the cluster authority, and
// one that it shows must be good.
func (p *PKI) APIServing() *tls.Config {
	return p.server(apiServing, tls.VerifyClientCertIfGiven, func(s *snapshot) *authority { return s.cluster })
}

// AgentClient is how the API server calls node agents.
func (p *PKI) AgentClient() *tls.Config {
	return p.client(apiAgentClient, func(s *snapshot) *authority { return s.cluster })
}

// AgentServing is how a node's agent is called, after Node: only by holders of a certificate of the cluster authority.
func (p *PKI) AgentServing(node string) *tls.Config {
	return p.server(nodeServing(node), tls.RequireAndVerifyClientCert, func(s *snapshot) *authority { return s.cluster })
}

// StorePeer is both ends of a connection between store members.
func (p *PKI) StorePeer() *tls.Config {
	config := p.server(storePeer, tls.RequireAndVerifyClientCert, func(s *snapshot) *authority { return s.store })
	config.RootCAs = config.ClientCAs
	return config
}

// StoreServing is for the store's etcd API: every client must show a certificate of the store authority.
func (p *PKI) StoreServing() *tls.Config {
	return p.server(storeServing, tls.RequireAndVerifyClientCert, func(s *snapshot) *authority { return s.store })
}

// StoreClient is how the store's etcd API is called.
func (p *PKI) StoreClient() *tls.Config {
	return p.client(storeClient, func(s *snapshot) *authority { return s.store })
}

// FrontProxyClient is how the API server calls aggregated API servers. Whose certificates to believe there the caller says: nothing
// that is signed here is.
func (p *PKI) FrontProxyClient() *tls.Config {
	config := p.client(frontProxyClient, func(s *snapshot) *authority { return s.frontProxy })
	config.RootCAs = nil
	return config
}

// APIClient is how the holder of one of the identities Admin, ControllerManager and Scheduler calls the API server.
func (p *PKI) APIClient(identity string) *tls.Config {
	return p.client(identity, func(s *snapshot) *authority { return s.cluster })
}

// NodeClient is how a node's agent calls the API server, after Node.
func (p *PKI) NodeClient(node string) *tls.Config { return p.APIClient(nodeClient(node)) }

func (p *PKI) server(name string, auth tls.ClientAuthType, of func(*snapshot) *authority) *tls.Config {
	now := func() *tls.Config {
		s := p.current.Load()
		return &tls.Config{
			MinVersion:   tls.VersionTLS12,
			Certificates: []tls.Certificate{s.pairs[name].certificate},
			ClientCAs:    of(s).pool,
			ClientAuth:   auth,
			Time:         p.opts.Now,
		}
	}
	config := now()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return now(), nil }
	return config
}

func (p *PKI) client(name string, of func(*snapshot) *authority) *tls.Config {
	s := p.current.Load()
	return clientConfig(s.pairs[name], of(s).pool, p.opts)
}

func clientConfig(pair *KeyPair, roots *x509.CertPool, opts Options) *tls.Config {
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{pair.certificate},
		RootCAs:      roots,
		Time:         opts.Now,
	}
}

// Live returns a function that returns what config does, and the same pointer until the certificates change
// (livetls.Source). Nobody may change what it returns.
func (p *PKI) Live(config func() *tls.Config) func() *tls.Config {
	var mu sync.Mutex // guards what follows
	var of *snapshot
	var current *tls.Config
	return func() *tls.Config {
		mu.Lock()
		defer mu.Unlock()
		if s := p.current.Load(); s != of {
			of, current = s, config()
		}
		return current
	}
}
