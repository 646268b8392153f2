package joining

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"

	"kontiki/internal/bootstraptoken"
)

// ClusterPath is where an API server says what a machine of its cluster has to know; for nodes, and for those who join.
const ClusterPath = "/kontiki/cluster"

// Protocol is the version of what members of a store say to each other and have on disk (docs/formats). Programs of
// different versions may be in one cluster, as during an upgrade, if they have the same. It is raised with a change that
// an older member could not follow. It is a variable for the linker, which gives tests another one.
var Protocol = "1"

// Cluster is what the machines of a cluster must agree on, and where a new member finds the others.
type Cluster struct {
	// Version is that of the server's program, for people; Protocol is Protocol.
	Version  string `json:"version"`
	Protocol string `json:"protocol"`
	// ClusterCIDR and ServiceCIDR are the ranges of pods and Services, one or one for each IP family with a comma between.
	ClusterCIDR   string `json:"clusterCIDR"`
	ServiceCIDR   string `json:"serviceCIDR"`
	ClusterDomain string `json:"clusterDomain"`
	// Members are the addresses (host and port) of the store's members; none if the store is outside.
	Members []string `json:"members,omitempty"`
}

// ClusterHandler serves ClusterPath.
func ClusterHandler(cluster func() Cluster) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(cluster()) // whoever has gone away asks again
	})
}

// FetchCluster asks the API server at a URL, by a token.
func FetchCluster(ctx context.Context, server string, token bootstraptoken.Join) (c Cluster, err error) {
	err = getByToken(ctx, server, ClusterPath, token, &c)
	return c, err
}

// FetchClusterAs asks by a certificate, as one who is of the cluster already.
func FetchClusterAs(ctx context.Context, server string, config *tls.Config) (c Cluster, err error) {
	err = getAs(ctx, server, ClusterPath, config, &c)
	return c, err
}

// FetchClusterBy asks through a client of the cluster's API servers.
func FetchClusterBy(ctx context.Context, transport http.RoundTripper, server string) (c Cluster, err error) {
	err = get(ctx, transport, server, ClusterPath, "", &c)
	return c, err
}

// CheckMember says whether a program of the version may have a member in the cluster. The error wraps ErrProtocol.
func (c Cluster) CheckMember(version string) error {
	if c.Protocol == Protocol {
		return nil
	}
	return fmt.Errorf("%w: its servers run kontiki %s (protocol %s), this is kontiki %s (protocol %s): install the same version here",
		ErrProtocol, c.Version, c.Protocol, version, Protocol)
}
