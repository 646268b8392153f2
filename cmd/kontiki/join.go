package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"time"

	"kontiki/internal/joining"
	"kontiki/internal/pki"
)

const defaultAPIPort = "6443"

// completeJoin checks --join and --token.
func (o *storeOptions) completeJoin() error {
	for i, text := range o.join {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.Path != "" || u.RawQuery != "" {
			return wrong("join", "%q is not a URL such as https://10.0.0.1:%s", text, defaultAPIPort)
		}
		if u.Port() == "" {
			o.join[i] = "https://" + net.JoinHostPort(u.Hostname(), defaultAPIPort)
		}
	}
	switch {
	case len(o.join) == 0 && o.token != "":
		return wrong("token", "is for --join, which is not given")
	case len(o.join) == 0:
		return nil
	case o.peerPort == 0:
		return wrong("join", "the other members must reach this one: --peer-port is 0")
	case len(o.endpoints) > 0:
		return wrong("join", "no member runs here with --store-endpoints")
	}
	var err error
	o.joinToken, err = parseToken(o.token)
	return err
}

const (
	// joinPatience bounds how long a new server asks for what it needs to join: the others may be starting, too.
	joinPatience = 30 * time.Second
	// memberPatience is how long a server is asked by one that is a member already, and needs nothing of it.
	memberPatience = 3 * time.Second
)

// meetCluster gets what a server needs of the others, at the first of the servers at --join that answers: the keys that all
// share, what all agree on, and where the store's members are. A server that is a member already knows that, and starts
// without an answer too: perhaps all are just starting.
func (n *node) meetCluster(ctx context.Context) error {
	if len(n.options.store.join) == 0 {
		return n.recallCluster()
	}
	_, err := os.Stat(n.joinedFile())
	member, patience := err == nil, joinPatience
	if member {
		patience = memberPatience
	}
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := n.fetchKeys(asking); err != nil {
		return err
	}
	cluster, err := n.askCluster(asking, !member)
	if err != nil && member && !errors.Is(err, joining.ErrProtocol) {
		n.log.Info("nobody at --join answers, which a member can do without", "err", err)
		return n.recallCluster()
	}
	if err == nil && len(cluster.Members) == 0 {
		err = errors.New("the servers there keep their objects in a store outside of them: use --store-endpoints instead of --join")
	}
	if err == nil {
		err = n.options.conform(cluster)
	}
	if err != nil {
		return fmt.Errorf("cannot join: %w", err)
	}
	n.options.store.members = cluster.Members
	return n.noteCluster()
}

// joinedFile is there when the store has been ready once: until then it may be one that nobody has let in.
func (n *node) joinedFile() string { return n.dir.join("store", "joined") }

// noteJoined is called when the server is ready.
func (n *node) noteJoined(context.Context) error {
	if n.plane.Store() == nil {
		return nil
	}
	return os.WriteFile(n.joinedFile(), nil, 0o600)
}

// anyServer calls f with the servers at --join, one after the other, until it works. As long as none can answer, a server
// that is new tries again.
func (n *node) anyServer(ctx context.Context, again bool, f func(url string) error) error {
	for {
		var errs []error
		answered := false
		for _, url := range n.options.store.join {
			err := f(url)
			if err == nil {
				return nil
			}
			answered = answered || !joining.IsTemporary(err)
			errs = append(errs, err)
		}
		err := errors.Join(errs...)
		if answered || !again || ctx.Err() != nil {
			return err
		}
		n.log.Info("cannot join yet, will ask again", "err", err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(joinRetry):
		}
	}
}

// joinRetry is how long a new server waits before it asks again.
const joinRetry = time.Second

// fetchKeys gets a server that joins the keys that all servers share, by its token. Without one it does not make
// authorities of its own, which the others would not trust.
func (n *node) fetchKeys(ctx context.Context) error {
	keys := n.dir.join("pki")
	if _, err := os.Stat(keys); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	token := n.options.store.joinToken
	if token == nil {
		return fmt.Errorf("cannot join: give --token (kontiki token create --for server), or copy the directory pki/ of a server of that cluster to %s first", keys)
	}
	var files map[string][]byte
	err := n.anyServer(ctx, true, func(url string) error {
		// Who cannot join for another reason has no business with the keys.
		cluster, err := joining.FetchCluster(ctx, url, *token)
		if err == nil {
			err = cluster.CheckMember(version)
		}
		if err == nil {
			files, err = joining.FetchKeys(ctx, url, *token)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot join: %w", err)
	}
	return pki.Import(keys, files)
}

// askCluster asks the servers at --join what machines of the cluster have to know, as one that has its keys.
func (n *node) askCluster(ctx context.Context, again bool) (cluster joining.Cluster, err error) {
	keys, err := pki.Open(n.dir.join("pki"), pki.Options{})
	if err != nil {
		return cluster, err
	}
	err = n.anyServer(ctx, again, func(url string) (err error) {
		if cluster, err = joining.FetchClusterAs(ctx, url, keys.APIClient(pki.Admin)); err == nil {
			err = cluster.CheckMember(version)
		}
		return err
	})
	if errors.As(err, new(x509.UnknownAuthorityError)) {
		err = fmt.Errorf("the keys in %s are not of that cluster: move them away and give a --token, or copy those of one of its servers: %w", n.dir.join("pki"), err)
	}
	return cluster, err
}
