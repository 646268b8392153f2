package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
)

const defaultPeerPort = "2380"

// completeJoin takes the URLs of --join apart.
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
	case len(o.members) == 0:
		return nil
	case o.peerPort == 0:
		return wrong("join", "the other members must reach this one: --peer-port is 0")
	case len(o.endpoints) > 0:
		return wrong("join", "no member runs here with --store-endpoints")
	}
	return nil
}

// checkJoin refuses to make new authorities for a server that is to have those of others.
func (n *node) checkJoin() error {
	keys := n.dir.join("pki")
	if _, err := os.Stat(keys); len(n.options.store.members) > 0 && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot join: copy the directory pki/ of a server of that cluster to %s first", keys)
	}
	return nil
}
