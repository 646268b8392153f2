package etcdapi

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kontiki/raftstore"
)

// clusterServer says who the members are.
//
// Not yet: adding, promoting and removing members. They go here, over methods of raftstore.Member that
// are added to the Member interface.
type clusterServer struct {
	pb.UnimplementedClusterServer
	*Server
}

// MemberList implements pb.ClusterServer.
func (s *clusterServer) MemberList(ctx context.Context, r *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	if r.Linearizable {
		if err := s.member.CatchUp(ctx); err != nil {
			return nil, toStatus(err)
		}
	}
	state, err := s.member.Status()
	if err != nil {
		return nil, toStatus(err)
	}
	answer := &pb.MemberListResponse{Header: s.header.at(0)} // etcd gives no revision here
	for _, p := range state.Members {
		answer.Members = append(answer.Members, s.describe(p))
	}
	return answer, nil
}

func (s *clusterServer) describe(p raftstore.Peer) *pb.Member {
	m := &pb.Member{ID: memberID(p.ID), Name: p.ID, PeerURLs: []string{"https://" + p.Address}}
	if s.config.ClientURLs != nil {
		m.ClientURLs = s.config.ClientURLs(p)
	}
	return m
}

var errNoChange = status.Error(codes.Unimplemented, "kontiki: members are not changed through this API yet")

// MemberAdd implements pb.ClusterServer.
func (s *clusterServer) MemberAdd(context.Context, *pb.MemberAddRequest) (*pb.MemberAddResponse, error) {
	return nil, errNoChange
}

// MemberRemove implements pb.ClusterServer.
func (s *clusterServer) MemberRemove(context.Context, *pb.MemberRemoveRequest) (*pb.MemberRemoveResponse, error) {
	return nil, errNoChange
}

// MemberUpdate implements pb.ClusterServer.
func (s *clusterServer) MemberUpdate(context.Context, *pb.MemberUpdateRequest) (*pb.MemberUpdateResponse, error) {
	return nil, errNoChange
}

// MemberPromote implements pb.ClusterServer.
func (s *clusterServer) MemberPromote(context.Context, *pb.MemberPromoteRequest) (*pb.MemberPromoteResponse, error) {
	return nil, errNoChange
}
