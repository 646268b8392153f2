package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"kontiki/internal/joining"
	"kontiki/internal/livetls"
)

// What all machines of a cluster must agree on is given to the first server. The others, and agents, learn it from a server
// when they join, and keep it in this file of their data directory.
const clusterFile = "cluster.json"

// asCluster is what the flags say.
func (o *networkOptions) asCluster() joining.Cluster {
	return joining.Cluster{
		Version: version, Protocol: joining.Protocol,
		ClusterCIDR: o.clusterCIDR, ServiceCIDR: o.serviceCIDR, ClusterDomain: o.clusterDomain,
	}
}

// settings are the flags' values by name, and those of the cluster.
func (o *networkOptions) settings(c joining.Cluster) map[string]struct {
	flag    *string
	cluster string
} {
	return map[string]struct {
		flag    *string
		cluster string
	}{
		"cluster-cidr":   {&o.clusterCIDR, c.ClusterCIDR},
		"service-cidr":   {&o.serviceCIDR, c.ServiceCIDR},
		"cluster-domain": {&o.clusterDomain, c.ClusterDomain},
	}
}

// adopt takes what the cluster says, but for flags that were given.
func (o *networkOptions) adopt(c joining.Cluster) error {
	for name, s := range o.settings(c) {
		if !o.given[name] && s.cluster != "" {
			*s.flag = s.cluster
		}
	}
	return o.complete()
}

// recallCluster takes what was noted at an earlier start; flags that are given win.
func (h *agentHost) recallCluster() error {
	data, err := os.ReadFile(h.dir.join(clusterFile))
	if errors.Is(err, fs.ErrNotExist) {
		return h.noteCluster()
	}
	var c joining.Cluster
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err == nil {
		err = h.options.adopt(c)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", h.dir.join(clusterFile), err)
	}
	return h.noteCluster()
}

// noteCluster keeps what the machine knows for its next start. What is noted already is not written again: a machine with a
// full disk must start, or nobody could make room.
func (h *agentHost) noteCluster() error {
	data, err := json.Marshal(h.options.network.asCluster())
	if err != nil {
		return err
	}
	data, path := append(data, '\n'), h.dir.join(clusterFile)
	if noted, err := os.ReadFile(path); err == nil && bytes.Equal(noted, data) {
		return nil
	}
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// adopt is networkOptions.adopt, and chooses the node's addresses anew, which depend on it.
func (o *options) adopt(c joining.Cluster) error {
	if err := o.network.adopt(c); err != nil {
		return err
	}
	if !o.network.given["node-ip"] {
		o.node.ipText = o.network.ownAddresses()
	}
	return o.node.completeAddresses()
}

// conform is adopt for a server, whose flags must not contradict the cluster.
func (o *options) conform(c joining.Cluster) error {
	for name, s := range o.network.settings(c) {
		if o.network.given[name] && *s.flag != s.cluster {
			return fmt.Errorf("--%s is %s here and %s in the cluster: leave the flag out", name, *s.flag, s.cluster)
		}
	}
	return o.adopt(c)
}

// How long an agent asks for what it has to know: for its first start there must be an answer, later it has the last one.
const (
	firstPatience = 2 * time.Minute
	askRetry      = 2 * time.Second
)

// learnCluster asks the servers what all machines agree on, as one of its nodes.
func (h *agentHost) learnCluster(ctx context.Context, source livetls.Source) error {
	_, err := os.Stat(h.dir.join(clusterFile))
	known, patience := err == nil, firstPatience
	if known {
		patience = memberPatience
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	transport := h.servers.Live(source).Transport
	for {
		c, err := joining.FetchClusterBy(ctx, transport, h.servers.Current())
		if err == nil {
			if err = h.options.adopt(c); err != nil {
				return fmt.Errorf("what the cluster says cannot be: %w", err)
			}
			return h.noteCluster()
		}
		if known {
			h.log.Info("no server says what the cluster agrees on, what it said before holds", "err", err)
			return h.recallCluster()
		}
		h.log.Warn("no server says what the cluster agrees on, will ask again", "err", err)
		select {
		case <-ctx.Done():
			return fmt.Errorf("no server says what the cluster agrees on: %w", err)
		case <-time.After(askRetry):
		}
	}
}
