package etcd

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// Status is what etcd says about itself.
type Status struct {
	Store     string           `json:"store"` // says that no member runs in this process
	Endpoints []EndpointStatus `json:"endpoints"`
}

// EndpointStatus is what the member behind an endpoint says about itself; or Error, if it does not answer.
type EndpointStatus struct {
	Endpoint     string   `json:"endpoint"`
	Error        string   `json:"error,omitempty"`
	Version      string   `json:"version,omitempty"`
	MemberID     string   `json:"memberID,omitempty"` // hexadecimal, as etcdctl prints it
	Leader       bool     `json:"leader,omitempty"`
	Term         uint64   `json:"term,omitempty"`
	AppliedIndex uint64   `json:"appliedIndex,omitempty"`
	Revision     int64    `json:"revision,omitempty"`
	SizeBytes    int64    `json:"sizeBytes,omitempty"` // of the file
	InUseBytes   int64    `json:"inUseBytes,omitempty"`
	Alarms       []string `json:"alarms,omitempty"`
}

// statusTimeout bounds the wait for one endpoint.
const statusTimeout = 3 * time.Second

// Status asks all endpoints at once.
func (s *Store) Status(ctx context.Context) Status {
	out := Status{Store: "outside of this process: no member runs here", Endpoints: make([]EndpointStatus, len(s.config.Endpoints))}
	var asking sync.WaitGroup
	for i, endpoint := range s.config.Endpoints {
		asking.Go(func() { out.Endpoints[i] = s.endpointStatus(ctx, endpoint) })
	}
	asking.Wait()
	return out
}

func (s *Store) endpointStatus(ctx context.Context, endpoint string) EndpointStatus {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	r, err := s.client.Status(ctx, endpoint)
	if err != nil {
		return EndpointStatus{Endpoint: endpoint, Error: rpctypes.ErrorDesc(err)}
	}
	return EndpointStatus{
		Endpoint: endpoint, Version: r.Version, MemberID: fmt.Sprintf("%x", r.Header.MemberId),
		Leader: r.Leader == r.Header.MemberId, Term: r.RaftTerm, AppliedIndex: r.RaftAppliedIndex,
		Revision: r.Header.Revision, SizeBytes: r.DbSize, InUseBytes: r.DbSizeInUse, Alarms: r.Errors,
	}
}
