package etcdapi

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"kontiki/raftstore"
)

// clusterServer says who the members are, and changes that.
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
	return &pb.MemberListResponse{Header: s.noRevision(), Members: s.members()}, nil
}

// noRevision is the header of answers about members: etcd gives no revision there.
func (s *clusterServer) noRevision() *pb.ResponseHeader { return s.header.at(0) }

func (s *clusterServer) members() (list []*pb.Member) {
	for _, m := range s.member.LocalMembers() {
		list = append(list, s.describe(m))
	}
	return list
}

// describe is a member in etcd's words. One that has not started yet has no name and no client URLs.
func (s *clusterServer) describe(m raftstore.MemberInfo) *pb.Member {
	name := m.Name
	if len(m.ClientURLs) > 0 {
		name = cmp.Or(name, m.ID) // to etcdctl, no name means not started
	}
	return &pb.Member{
		ID: memberID(m.ID), Name: name, PeerURLs: []string{"https://" + m.Address},
		ClientURLs: m.ClientURLs, IsLearner: m.Learner,
	}
}

// MemberAdd implements pb.ClusterServer. Kontiki's members ask by themselves to be added, with an id of
// their own; one that is announced here, by its address alone, gets an id that makes room for the one
// that comes (raftstore.Member.AddMember). Until then it has no vote.
func (s *clusterServer) MemberAdd(ctx context.Context, r *pb.MemberAddRequest) (*pb.MemberAddResponse, error) {
	address, err := peerAddress(r.PeerURLs)
	if err != nil {
		return nil, err
	}
	id, add := fmt.Sprintf("announced-%08x", rand.Uint32()), s.member.AddMember
	if r.IsLearner {
		add = s.member.AddLearner
	}
	if err := add(ctx, id, address); err != nil {
		return nil, toStatus(err)
	}
	added := s.describe(raftstore.MemberInfo{ID: id, Address: address, Learner: r.IsLearner})
	return &pb.MemberAddResponse{Header: s.noRevision(), Member: added, Members: s.members()}, nil
}

// MemberRemove implements pb.ClusterServer.
func (s *clusterServer) MemberRemove(ctx context.Context, r *pb.MemberRemoveRequest) (*pb.MemberRemoveResponse, error) {
	if err := s.member.RemoveMember(ctx, s.nodeID(r.ID)); err != nil {
		return nil, toStatus(err)
	}
	return &pb.MemberRemoveResponse{Header: s.noRevision(), Members: s.members()}, nil
}

// MemberUpdate implements pb.ClusterServer.
func (s *clusterServer) MemberUpdate(ctx context.Context, r *pb.MemberUpdateRequest) (*pb.MemberUpdateResponse, error) {
	address, err := peerAddress(r.PeerURLs)
	if err != nil {
		return nil, err
	}
	if err := s.member.UpdateMember(ctx, s.nodeID(r.ID), address); err != nil {
		return nil, toStatus(err)
	}
	return &pb.MemberUpdateResponse{Header: s.noRevision(), Members: s.members()}, nil
}

// MemberPromote implements pb.ClusterServer.
func (s *clusterServer) MemberPromote(ctx context.Context, r *pb.MemberPromoteRequest) (*pb.MemberPromoteResponse, error) {
	if err := s.member.PromoteMember(ctx, s.nodeID(r.ID)); err != nil {
		return nil, toStatus(err)
	}
	return &pb.MemberPromoteResponse{Header: s.noRevision(), Members: s.members()}, nil
}

// nodeID finds a member by etcd's kind of id; empty, which is nobody, if there is none.
func (s *Server) nodeID(id uint64) string {
	for _, m := range s.member.LocalMembers() {
		if memberID(m.ID) == id {
			return m.ID
		}
	}
	return ""
}

// peerAddress is the host and port of the one peer URL that a member has.
func peerAddress(urls []string) (string, error) {
	if len(urls) != 1 {
		return "", rpctypes.ErrGRPCMemberBadURLs
	}
	u, err := url.Parse(urls[0])
	if err != nil || u.Host == "" || u.Port() == "" || u.Path != "" {
		return "", rpctypes.ErrGRPCMemberBadURLs
	}
	return u.Host, nil
}
