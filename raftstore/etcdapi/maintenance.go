package etcdapi

import (
	"context"
	"encoding/binary"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/api/v3/version"
)

// maintenanceServer looks into a member and after it. Downgrade is etcd's own affair and unimplemented.
type maintenanceServer struct {
	pb.UnimplementedMaintenanceServer
	*Server
}

// storageVersion is the release of etcd whose data model the store has, without its patch level: etcd says
// the same in a status and in a snapshot.
var storageVersion = version.Cluster(version.Version) + ".0"

// Status implements pb.MaintenanceServer. The version is that of the etcd API that is served.
func (s *maintenanceServer) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	state, err := s.member.Status()
	if err != nil {
		return nil, toStatus(err)
	}
	r := &pb.StatusResponse{
		Header: s.header.now(), Version: version.Version, StorageVersion: storageVersion, RaftTerm: state.Term,
		RaftIndex: state.CommitIndex, RaftAppliedIndex: state.Store.Applied,
		DbSize: state.Store.FileBytes, DbSizeInUse: state.Store.InUseBytes, DbSizeQuota: state.QuotaBytes,
		DowngradeInfo: &pb.DowngradeInfo{}, IsLearner: s.isLearner(state.NodeID),
	}
	if state.Leader.ID == "" {
		r.Errors = append(r.Errors, rpctypes.ErrNoLeader.Error())
	} else {
		r.Leader = memberID(state.Leader.ID)
	}
	for _, a := range s.alarms() {
		r.Errors = append(r.Errors, a.String())
	}
	return r, nil
}

func (s *maintenanceServer) isLearner(id string) bool {
	for _, m := range s.member.LocalMembers() {
		if m.ID == id {
			return m.Learner
		}
	}
	return false
}

// Hash implements pb.MaintenanceServer.
func (s *maintenanceServer) Hash(context.Context, *pb.HashRequest) (*pb.HashResponse, error) {
	hash, revision, err := s.hash(0)
	if err != nil {
		return nil, toStatus(err)
	}
	return &pb.HashResponse{Header: s.header.at(revision), Hash: hash}, nil
}

// HashKV implements pb.MaintenanceServer. The hash is of the content at the revision, so it is the same
// on all members, however far each is compacted.
func (s *maintenanceServer) HashKV(_ context.Context, r *pb.HashKVRequest) (*pb.HashKVResponse, error) {
	hash, revision, err := s.hash(r.Revision)
	if err != nil {
		return nil, toStatus(err)
	}
	state, err := s.member.Status()
	if err != nil {
		return nil, toStatus(err)
	}
	return &pb.HashKVResponse{Header: s.header.now(), Hash: hash, HashRevision: revision, CompactRevision: state.Store.Compacted}, nil
}

// hash is the first part of the store's hash: there is no room for more.
func (s *maintenanceServer) hash(at int64) (hash uint32, revision int64, err error) {
	h, revision, err := s.member.HashAt(at)
	return binary.BigEndian.Uint32(h[:]), revision, err
}

// Defragment implements pb.MaintenanceServer.
func (s *maintenanceServer) Defragment(ctx context.Context, _ *pb.DefragmentRequest) (*pb.DefragmentResponse, error) {
	if err := s.member.Defragment(ctx); err != nil {
		return nil, toStatus(err)
	}
	return &pb.DefragmentResponse{Header: s.header.now()}, nil
}

// MoveLeader implements pb.MaintenanceServer. As in etcd, only the leader can be asked.
func (s *maintenanceServer) MoveLeader(ctx context.Context, r *pb.MoveLeaderRequest) (*pb.MoveLeaderResponse, error) {
	if s.member.Leader().ID != s.member.ID() {
		return nil, rpctypes.ErrGRPCNotLeader
	}
	if err := s.member.MoveLeader(ctx, s.nodeID(r.TargetID)); err != nil {
		return nil, toStatus(err)
	}
	return &pb.MoveLeaderResponse{Header: s.header.now()}, nil
}
