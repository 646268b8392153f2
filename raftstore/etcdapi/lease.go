package etcdapi

import (
	"context"
	"errors"
	"io"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"kontiki/mvcc"
)

// leaseServer is about leases; raftstore/lessor.go measures their time.
type leaseServer struct {
	pb.UnimplementedLeaseServer
	*Server
}

// LeaseGrant implements pb.LeaseServer.
func (s *leaseServer) LeaseGrant(ctx context.Context, r *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	l, err := s.member.GrantLease(ctx, r.ID, r.TTL)
	if err != nil {
		return nil, toStatus(err)
	}
	return &pb.LeaseGrantResponse{Header: s.header.now(), ID: l.ID, TTL: l.TTLSeconds}, nil
}

// LeaseRevoke implements pb.LeaseServer.
func (s *leaseServer) LeaseRevoke(ctx context.Context, r *pb.LeaseRevokeRequest) (*pb.LeaseRevokeResponse, error) {
	revision, err := s.member.RevokeLease(ctx, r.ID)
	if err != nil {
		return nil, toStatus(err)
	}
	return &pb.LeaseRevokeResponse{Header: s.header.at(revision)}, nil
}

// LeaseKeepAlive implements pb.LeaseServer. A lease that is gone is answered with TTL 0, not an error.
func (s *leaseServer) LeaseKeepAlive(stream pb.Lease_LeaseKeepAliveServer) error {
	for {
		r, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		// The header is made first: at its revision the lease is certainly still there if it was renewed.
		answer := &pb.LeaseKeepAliveResponse{Header: s.header.now(), ID: r.ID}
		status, err := s.member.RenewLease(stream.Context(), r.ID)
		switch {
		case err == nil:
			answer.TTL = status.TTLSeconds
		case !errors.Is(err, mvcc.ErrLeaseNotFound):
			return toStatus(err)
		}
		if err := stream.Send(answer); err != nil {
			return err
		}
	}
}

// LeaseTimeToLive implements pb.LeaseServer. A lease that is gone is answered with TTL -1, not an error.
func (s *leaseServer) LeaseTimeToLive(ctx context.Context, r *pb.LeaseTimeToLiveRequest) (*pb.LeaseTimeToLiveResponse, error) {
	status, err := s.member.LeaseTimeToLive(ctx, r.ID)
	if errors.Is(err, mvcc.ErrLeaseNotFound) {
		return &pb.LeaseTimeToLiveResponse{Header: s.header.now(), ID: r.ID, TTL: -1}, nil
	}
	if err != nil {
		return nil, toStatus(err)
	}
	answer := &pb.LeaseTimeToLiveResponse{ID: r.ID, TTL: int64(status.Remaining / time.Second), GrantedTTL: status.TTLSeconds}
	if r.Keys {
		if answer.Keys, err = s.member.LeaseKeys(ctx, r.ID); err != nil {
			return nil, toStatus(err)
		}
	}
	answer.Header = s.header.now()
	return answer, nil
}

// LeaseLeases implements pb.LeaseServer.
func (s *leaseServer) LeaseLeases(ctx context.Context, _ *pb.LeaseLeasesRequest) (*pb.LeaseLeasesResponse, error) {
	leases, err := s.member.Leases(ctx)
	if err != nil {
		return nil, toStatus(err)
	}
	answer := &pb.LeaseLeasesResponse{Header: s.header.now()}
	for _, l := range leases {
		answer.Leases = append(answer.Leases, &pb.LeaseStatus{ID: l.ID})
	}
	return answer, nil
}
