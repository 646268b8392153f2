package frontproxy

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	authenticationv1 "k8s.io/api/authentication/v1"
)

// ErrCA is a Config.CA that has no certificate.
var ErrCA = errors.New("the front proxy's authority cannot be read")

// Config of a Proxy. Its zero value believes nobody.
type Config struct {
	// CA returns the PEM of the authorities that sign the proxy's client certificate; ClientCA that of those who sign certificates of
	// users (without it, all but the proxy's are taken for that). They should have none in common; one that they have is good for both.
	// They are called at every handshake and request, and may return other authorities from one time to the next.
	CA, ClientCA func() []byte
	// AllowedNames are the common names of the certificates that are believed; none means any.
	AllowedNames []string
	// UsernameHeaders, UIDHeaders and GroupHeaders are looked at in their order. No username header means X-Remote-User, no group header
	// X-Remote-Group; no UID header means that there is no uid.
	UsernameHeaders, UIDHeaders, GroupHeaders []string
	// ExtraHeaderPrefixes begin the headers of extra; none means X-Remote-Extra-.
	ExtraHeaderPrefixes []string
}

// Proxy tells requests of the front proxy from others.
type Proxy struct {
	config  Config
	current atomic.Pointer[authorities]
}

// authorities are what the two functions of Config returned, and what it means.
type authorities struct {
	ca, clientCA []byte
	roots        []*x509.Certificate
	users        []*x509.Certificate
	unreadable   bool // then nobody is believed, nor taken for a user
}

// New reads the configuration. Without a CA the Proxy believes nobody, and still strips. The error is ErrCA.
func New(config Config) (*Proxy, error) {
	if len(config.UsernameHeaders) == 0 {
		config.UsernameHeaders = []string{"X-Remote-User"}
	}
	if len(config.GroupHeaders) == 0 {
		config.GroupHeaders = []string{"X-Remote-Group"}
	}
	if len(config.ExtraHeaderPrefixes) == 0 {
		config.ExtraHeaderPrefixes = []string{"X-Remote-Extra-"}
	}
	none := func() []byte { return nil }
	if config.CA == nil {
		config.CA = none
	}
	if config.ClientCA == nil {
		config.ClientCA = none
	}
	p := &Proxy{config: config}
	read, err := readAuthorities(config.CA(), config.ClientCA())
	p.current.Store(read)
	return p, err
}

func readAuthorities(ca, clientCA []byte) (*authorities, error) {
	a := &authorities{ca: ca, clientCA: clientCA}
	var err error
	if a.users, err = certificates(clientCA); err != nil {
		return a, fmt.Errorf("the authority of users: %w", err)
	}
	if len(ca) == 0 {
		return a, nil
	}
	if a.roots, err = certificates(ca); err != nil || len(a.roots) == 0 {
		return a, errors.Join(ErrCA, err)
	}
	return a, nil
}

// now are the authorities as they are now; those that cannot be read are believed in nothing.
func (p *Proxy) now() *authorities {
	ca, clientCA := p.config.CA(), p.config.ClientCA()
	a := p.current.Load()
	if bytes.Equal(a.ca, ca) && bytes.Equal(a.clientCA, clientCA) {
		return a
	}
	a, err := readAuthorities(ca, clientCA)
	if err != nil {
		a = &authorities{ca: ca, clientCA: clientCA, unreadable: true}
	}
	p.current.Store(a)
	return a
}

func certificates(text []byte) (out []*x509.Certificate, err error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		out = append(out, certificate)
	}
	return out, nil
}

// AddRoots puts the authorities that sign the proxy's certificates into a pool of those whose certificates a TLS handshake accepts.
func (p *Proxy) AddRoots(pool *x509.CertPool) {
	for _, root := range p.now().roots {
		pool.AddCert(root)
	}
}

// Believed says whether a chain that a handshake has verified is that of the front proxy.
func (p *Proxy) Believed(chain []*x509.Certificate) bool {
	return slices.ContainsFunc(p.now().roots, chain[len(chain)-1].Equal) &&
		(len(p.config.AllowedNames) == 0 || slices.Contains(p.config.AllowedNames, chain[0].Subject.CommonName))
}

// MayBeUser says whether a verified chain can be that of a user of the cluster: it ends in an authority that signs users now. A connection
// may be older than a change of authorities, so that it is not of the proxy does not make it a user's.
func (p *Proxy) MayBeUser(chain []*x509.Certificate) bool {
	root, a := chain[len(chain)-1], p.now()
	if a.unreadable {
		return false
	}
	if len(a.users) == 0 {
		return !slices.ContainsFunc(a.roots, root.Equal)
	}
	return slices.ContainsFunc(a.users, root.Equal)
}

// User is who the headers name; ok is false if they name nobody.
func (p *Proxy) User(header http.Header) (user authenticationv1.UserInfo, ok bool) {
	first := func(names []string) string {
		for _, name := range names {
			if value := header.Get(name); value != "" {
				return value
			}
		}
		return ""
	}
	if user.Username = first(p.config.UsernameHeaders); user.Username == "" {
		return user, false
	}
	user.UID = first(p.config.UIDHeaders)
	for _, name := range p.config.GroupHeaders {
		for _, group := range header.Values(name) {
			if group != "" {
				user.Groups = append(user.Groups, group)
			}
		}
	}
	for name, values := range header {
		for _, prefix := range p.config.ExtraHeaderPrefixes {
			if rest, found := cutPrefixFold(name, prefix); found {
				if user.Extra == nil {
					user.Extra = map[string]authenticationv1.ExtraValue{}
				}
				key := strings.ToLower(rest)
				if decoded, err := url.PathUnescape(key); err == nil {
					key = decoded
				}
				user.Extra[key] = append(user.Extra[key], values...)
			}
		}
	}
	return user, true
}

// Strip removes the headers. A name with underscores in place of hyphens goes as well: programs that read headers as CGI
// variables (RFC 3875, 4.1.18) cannot tell the two.
func (p *Proxy) Strip(header http.Header) {
	for name := range header {
		plain := strings.ReplaceAll(name, "_", "-")
		is := func(other string) bool { return strings.EqualFold(plain, other) }
		begins := func(prefix string) bool { _, found := cutPrefixFold(plain, prefix); return found }
		if slices.ContainsFunc(p.config.UsernameHeaders, is) || slices.ContainsFunc(p.config.UIDHeaders, is) || is("X-Remote-Uid") ||
			slices.ContainsFunc(p.config.GroupHeaders, is) || slices.ContainsFunc(p.config.ExtraHeaderPrefixes, begins) {
			delete(header, name)
		}
	}
}

func cutPrefixFold(s, prefix string) (rest string, found bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return "", false
	}
	return s[len(prefix):], true
}
