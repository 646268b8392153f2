package controlplane

import (
	"net/http"

	"kontiki/internal/joining"
	"kontiki/internal/pki"
)

// paths are what this API server serves beside the API.
func (c *ControlPlane) paths() map[string]http.Handler {
	export := func() (map[string][]byte, error) { return pki.Export(c.config.PKI.Dir()) }
	return map[string]http.Handler{
		joining.KeysPath:    joining.KeysHandler(export, c.config.Log.With("component", "joining")),
		joining.ClusterPath: joining.ClusterHandler(c.cluster),
	}
}

// cluster is what machines are told that join.
func (c *ControlPlane) cluster() joining.Cluster {
	cluster := c.config.Cluster
	cluster.Protocol = joining.Protocol
	if c.store != nil {
		for _, m := range c.store.LocalMembers() {
			cluster.Members = append(cluster.Members, m.Address)
		}
	}
	return cluster
}
