package controlplane

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"kontiki/internal/pki"
	"kontiki/raftstore"
)

// joinTimeout is how long a new member asks the others to let it in: they may be starting, too.
const joinTimeout = 30 * time.Second

// network is how the member here and the others reach each other: mutual TLS with certificates of the store's authority.
// Nil, which is a network of its own, for a member that stays alone.
func (c *ControlPlane) network() raftstore.Network {
	if c.config.PeerListener == nil {
		return nil
	}
	return raftstore.NewNetwork(c.config.PeerListener, c.config.PeerAddress, c.config.PKI.StorePeer(), c.config.PKI.StorePeer)
}

// watchMembership ends the control plane when its member was removed from the store's cluster.
func (c *ControlPlane) watchMembership() {
	if c.store == nil {
		return
	}
	c.running.Go(func() {
		select {
		case <-c.store.Removed():
			c.fail(fmt.Errorf("store: %w", c.explain(c.store.Excluded())))
		case <-c.closing:
		}
	})
}

// explain adds what the operator can do about errors of membership.
func (c *ControlPlane) explain(err error) error {
	advice := ""
	switch {
	case errors.Is(err, raftstore.ErrRemoved):
		advice = "to join again, move " + c.config.Dir + " away and name a running member to join"
	case errors.Is(err, raftstore.ErrOtherCluster):
		advice = "to join, move " + c.config.Dir + " away first"
	case errors.Is(err, raftstore.ErrNameTaken):
		advice = "choose another node name, or remove the other member first"
	case errors.As(err, new(x509.UnknownAuthorityError)):
		advice = filepath.Join(c.config.PKI.Dir(), "store-ca.crt") + " is not of that cluster: copy the pki directory of one of its servers"
	default:
		return err
	}
	return fmt.Errorf("%w: %s", err, advice)
}

// networkToAsk reaches the members of the store's cluster as the member here would.
func networkToAsk(keys *pki.PKI) (raftstore.Network, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // nobody is told this address
	if err != nil {
		return nil, err
	}
	return raftstore.NewNetwork(listener, "", keys.StorePeer(), keys.StorePeer), nil
}
