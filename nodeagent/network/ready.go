package network

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/containernetworking/cni/libcni"
)

// statusAge is how long the plugins' word that they are ready is taken for true. A refusal is asked about each time.
const statusAge = 10 * time.Second

// readiness remembers what the plugins said.
type readiness struct {
	mu     sync.Mutex // guards the fields, and has one asker at a time
	config []byte     // that was last found good
	at     time.Time
}

// Ready is nil when pods can be attached: there is a configuration, its plugins are there, know its version of the CNI, and
// do not object (CNI STATUS, from version 1.1 on). Errors are ErrNotReady.
func (n *Network) Ready(ctx context.Context) error {
	list, err := n.list(&libcni.RuntimeConf{})
	if err != nil {
		return err
	}
	r := &n.readiness
	r.mu.Lock()
	defer r.mu.Unlock()
	known := bytes.Equal(r.config, list.Bytes)
	if known && time.Since(r.at) < statusAge {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Timeout)
	defer cancel()
	r.config = nil
	if !known { // programs are started for this: once for each configuration
		if _, err := n.cni.ValidateNetworkList(ctx, list); err != nil {
			return fmt.Errorf("%w: network %s: %w", ErrNotReady, list.Name, err)
		}
	}
	if err := n.cni.GetStatusNetworkList(ctx, list); err != nil {
		return fmt.Errorf("%w: network %s: CNI STATUS: %w", ErrNotReady, list.Name, err)
	}
	r.config, r.at = list.Bytes, time.Now()
	return nil
}
