package oidc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/apis/apiserver"
)

const (
	// refetchAfter is the least time between two fetches, whatever tokens come.
	refetchAfter = 10 * time.Second
	// keysGoodFor is how long keys count before the issuer is asked again.
	keysGoodFor = time.Hour
	// fetchTimeout bounds one fetch, of discovery and keys together.
	fetchTimeout = 10 * time.Second
	// maxDocumentBytes bounds each document of an issuer.
	maxDocumentBytes = 1 << 20
)

const discoveryPath = "/.well-known/openid-configuration"

// keySet is the published keys of one issuer.
type keySet struct {
	issuer    string
	discovery string
	client    *http.Client
	now       func() time.Time
	log       *slog.Logger

	fetching sync.Mutex // held over a fetch: the others wait for its result; taken before mu

	mu      sync.Mutex // guards what follows
	keys    []key
	fetched time.Time // when keys were
	tried   time.Time // when a fetch ended last
	failure error     // of the last fetch; nil if it was well
}

func newKeySet(issuer apiserver.Issuer, options Options) (*keySet, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if issuer.CertificateAuthority != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(issuer.CertificateAuthority)) {
			return nil, errors.New("certificateAuthority has no certificate")
		}
	}
	k := &keySet{
		issuer: issuer.URL, discovery: strings.TrimSuffix(issuer.URL, "/") + discoveryPath, now: options.Now, log: options.Log,
		client: &http.Client{
			Transport: &http.Transport{TLSClientConfig: config, Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute},
			CheckRedirect: func(r *http.Request, via []*http.Request) error {
				if r.URL.Scheme != "https" || len(via) >= 5 {
					return fmt.Errorf("redirected to %s", r.URL.Redacted())
				}
				return nil
			},
		},
	}
	if issuer.DiscoveryURL != "" {
		k.discovery = issuer.DiscoveryURL
	}
	return k, nil
}

// get returns the key with the id, or all keys if it is empty. It fetches them if they are old or the id is not among them.
func (k *keySet) get(ctx context.Context, id string) ([]key, error) {
	found, fresh := k.known(id)
	if len(found) > 0 && fresh {
		return found, nil
	}
	err := k.refresh(ctx, id)
	if found, _ = k.known(id); len(found) > 0 {
		return found, nil // old ones count on while the issuer cannot be reached
	}
	if err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%w: the issuer has no such key", ErrInvalid)
}

func (k *keySet) known(id string) (found []key, fresh bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range k.keys {
		if id == "" || key.id == id {
			found = append(found, key)
		}
	}
	return found, k.now().Sub(k.fetched) < keysGoodFor
}

// refresh fetches the keys unless that was tried a moment ago. The fetch does not end with the request that needs it: others wait
// for it as well, but not those who have a key that is merely old.
func (k *keySet) refresh(ctx context.Context, id string) error {
	if found, _ := k.known(id); len(found) == 0 {
		k.fetching.Lock()
	} else if !k.fetching.TryLock() {
		return nil
	}
	defer k.fetching.Unlock()
	if found, fresh := k.known(id); len(found) > 0 && fresh {
		return nil // somebody else has just fetched it
	}
	k.mu.Lock()
	if now := k.now(); !k.tried.IsZero() && now.Sub(k.tried) < refetchAfter {
		defer k.mu.Unlock()
		return k.failure
	}
	k.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
	defer cancel()
	keys, err := k.fetch(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tried = k.now()
	if k.failure = err; err != nil {
		k.log.Warn("keys of a token issuer cannot be fetched", "issuer", k.issuer, "err", err)
		return err
	}
	k.keys, k.fetched = keys, k.now()
	return nil
}

func (k *keySet) fetch(ctx context.Context) ([]key, error) {
	var provider struct {
		Issuer  string `json:"issuer"`
		KeysURL string `json:"jwks_uri"`
	}
	if err := k.read(ctx, k.discovery, &provider); err != nil {
		return nil, err
	}
	if provider.Issuer != k.issuer { // OpenID Connect Discovery 1.0, 4.3
		return nil, fmt.Errorf("%w: %s is the discovery document of %q", ErrKeys, k.discovery, provider.Issuer)
	}
	var document struct {
		Keys []jsonWebKey `json:"keys"`
	}
	if err := k.read(ctx, provider.KeysURL, &document); err != nil {
		return nil, err
	}
	var keys []key
	for _, published := range document.Keys {
		if key, ok := published.key(); ok {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%w: %s has none that can be used", ErrKeys, provider.KeysURL)
	}
	return keys, nil
}

func (k *keySet) read(ctx context.Context, url string, into any) error {
	if !strings.HasPrefix(url, "https://") {
		return fmt.Errorf("%w: %q is no https URL", ErrKeys, url)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrKeys, err)
	}
	answer, err := k.client.Do(request)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrKeys, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: %s answers %s", ErrKeys, url, answer.Status)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxDocumentBytes+1))
	if err == nil && len(text) > maxDocumentBytes {
		err = fmt.Errorf("%s is longer than %d bytes", url, maxDocumentBytes)
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrKeys, err)
	}
	return nil
}
