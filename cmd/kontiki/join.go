package main

import (
	"cmp"
	"context"
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

const defaultPeerPort = "2380"

// completeJoin takes the URLs of --join, and --token, apart.
func (o *storeOptions) completeJoin() error {
	o.members = nil
	for _, text := range o.join {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.Path != "" || u.RawQuery != "" {
			return wrong("join", "%q is not a URL such as https://10.0.0.1:%s", text, defaultPeerPort)
		}
		o.members = append(o.members, net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), defaultPeerPort)))
	}
	switch {
	case len(o.members) == 0 && o.token != "":
		return wrong("token", "is for --join, which is not given")
	case len(o.members) == 0:
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

// keysPatience bounds how long the keys of the cluster are asked for.
const keysPatience = time.Minute

// fetchKeys gets a server that joins the keys that all servers share, by its token. Without one it does not make
// authorities of its own, which the others would not trust.
func (n *node) fetchKeys(ctx context.Context) error {
	o, keys := n.options, n.dir.join("pki")
	if _, err := os.Stat(keys); len(o.store.members) == 0 || !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if o.store.joinToken == nil {
		return fmt.Errorf("cannot join: give --token (kontiki token create --for server), or copy the directory pki/ of a server of that cluster to %s first", keys)
	}
	ctx, cancel := context.WithTimeout(ctx, keysPatience)
	defer cancel()
	files, err := joining.FetchKeys(ctx, o.store.keysFrom(), *o.store.joinToken)
	if err != nil {
		return fmt.Errorf("cannot join: %w", err)
	}
	return pki.Import(keys, files)
}

// keysFrom is the API server that hands out the keys: --server, or the one beside the first member.
func (o *storeOptions) keysFrom() string {
	if o.server != "" {
		return o.server
	}
	host, _, _ := net.SplitHostPort(o.members[0]) // completeJoin has put it together
	return "https://" + net.JoinHostPort(host, "6443")
}
