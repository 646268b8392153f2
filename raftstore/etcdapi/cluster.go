package etcdapi

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"time"

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
	list, err := s.membersOnce(ctx, id, func(m *raftstore.MemberInfo) bool { return m != nil })
	if err != nil {
		return nil, toStatus(err)
	}
	// The other kind begins as a learner as well; etcd's clients expect what they asked for.
	added := s.describe(raftstore.MemberInfo{ID: id, Address: address, Learner: r.IsLearner})
	return &pb.MemberAddResponse{Header: s.noRevision(), Member: added, Members: list}, nil
}

// MemberRemove implements pb.ClusterServer.
func (s *clusterServer) MemberRemove(ctx context.Context, r *pb.MemberRemoveRequest) (*pb.MemberRemoveResponse, error) {
	id := s.nodeID(r.ID)
	if err := s.member.RemoveMember(ctx, id); err != nil {
		return nil, toStatus(err)
	}
	list, err := s.membersOnce(ctx, id, func(m *raftstore.MemberInfo) bool { return m == nil })
	return &pb.MemberRemoveResponse{Header: s.noRevision(), Members: list}, toStatus(err)
}

// MemberUpdate implements pb.ClusterServer.
func (s *clusterServer) MemberUpdate(ctx context.Context, r *pb.MemberUpdateRequest) (*pb.MemberUpdateResponse, error) {
	address, err := peerAddress(r.PeerURLs)
	if err != nil {
		return nil, err
	}
	id := s.nodeID(r.ID)
	if err := s.member.UpdateMember(ctx, id, address); err != nil {
		return nil, toStatus(err)
	}
	list, err := s.membersOnce(ctx, id, func(m *raftstore.MemberInfo) bool { return m != nil && m.Address == address })
	return &pb.MemberUpdateResponse{Header: s.noRevision(), Members: list}, toStatus(err)
}

// MemberPromote implements pb.ClusterServer.
func (s *clusterServer) MemberPromote(ctx context.Context, r *pb.MemberPromoteRequest) (*pb.MemberPromoteResponse, error) {
	id := s.nodeID(r.ID)
	if err := s.member.PromoteMember(ctx, id); err != nil {
		return nil, toStatus(err)
	}
	list, err := s.membersOnce(ctx, id, func(m *raftstore.MemberInfo) bool { return m != nil && !m.Learner })
	return &pb.MemberPromoteResponse{Header: s.noRevision(), Members: list}, toStatus(err)
}

const (
	membersPoll = 5 * time.Millisecond
	membersWait = 5 * time.Second
)

// membersOnce returns the members when this one has heard of a change that the leader has made. If that
// takes too long, as when another change follows at once, it returns what is known here.
func (s *clusterServer) membersOnce(ctx context.Context, id string, heard func(*raftstore.MemberInfo) bool) ([]*pb.Member, error) {
	tick := time.NewTicker(membersPoll)
	defer tick.Stop()
	for limit := time.Now().Add(membersWait); !heard(s.find(id)) && time.Now().Before(limit); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return s.members(), nil
}

func (s *clusterServer) find(id string) *raftstore.MemberInfo {
	for _, m := range s.member.LocalMembers() {
		if m.ID == id {
			return &m
		}
	}
	return nil
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
