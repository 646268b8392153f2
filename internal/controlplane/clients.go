package controlplane

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"kontiki/raftstore/etcdapi"
)

// serveClients serves the member here as the etcd v3 API, if there is a listener for it.
func (c *ControlPlane) serveClients() {
	if c.config.ClientListener == nil || c.store == nil {
		return
	}
	c.front = etcdapi.New(c.store, etcdapi.Config{
		TLS:         c.config.PKI.StoreServing(),
		ClusterName: c.config.PKI.ClusterID(),
		Log:         c.config.Log.With("component", "etcd API"),
	})
	c.running.Go(func() {
		if err := c.front.Serve(c.config.ClientListener); err != nil {
			c.fail(err)
		}
	})
}

// closeListeners is for an Open that fails.
func (c *ControlPlane) closeListeners() {
	c.config.Listener.Close()
	if c.config.PeerListener != nil {
		c.config.PeerListener.Close()
	}
	if c.config.ClientListener != nil {
		c.config.ClientListener.Close()
	}
}

// fail reports what ended by itself; the first one counts.
func (c *ControlPlane) fail(err error) {
	select {
	case c.failed <- err:
	default:
	}
}

// StoreClientURL is where the store's etcd API is reached from this machine.
func (c *ControlPlane) StoreClientURL() (string, error) {
	if c.config.ClientListener == nil {
		return "", errors.New("the store's etcd API is not served: see --client-port")
	}
	address := c.config.ClientListener.Addr().(*net.TCPAddr)
	if address.IP.IsUnspecified() {
		return fmt.Sprintf("https://127.0.0.1:%d", address.Port), nil
	}
	return "https://" + address.String(), nil
}

// clientURLs is where other machines reach the store's etcd API; this one alone if it has no address for them.
func (c *ControlPlane) clientURLs() []string {
	if c.config.ClientListener == nil {
		return nil
	}
	if c.config.AdvertiseAddress.IsValid() {
		port := c.config.ClientListener.Addr().(*net.TCPAddr).Port
		return []string{"https://" + netip.AddrPortFrom(c.config.AdvertiseAddress, uint16(port)).String()}
	}
	url, err := c.StoreClientURL()
	if err != nil {
		return nil
	}
	return []string{url}
}
