package etcdapi

import (
	"crypto/sha256"
	"encoding/binary"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// header makes the header of answers: who answers, in which term, as of which revision.
type header struct {
	clusterID uint64
	memberID  uint64
	member    Member
}

func newHeader(member Member, cluster string) header {
	return header{clusterID: hashID("cluster " + cluster), memberID: memberID(member.ID()), member: member}
}

// memberID is etcd's kind of id for a member's name.
func memberID(nodeID string) uint64 { return hashID("member " + nodeID) }

// hashID is not 0, which means nobody.
func hashID(name string) uint64 {
	sum := sha256.Sum256([]byte(name))
	return binary.BigEndian.Uint64(sum[:]) | 1
}

// at is the header of an answer as of a revision.
func (h header) at(revision int64) *pb.ResponseHeader {
	return &pb.ResponseHeader{ClusterId: h.clusterID, MemberId: h.memberID, Revision: revision, RaftTerm: h.member.Term()}
}

// now is the header of an answer as of what this member has.
func (h header) now() *pb.ResponseHeader { return h.at(h.member.LocalRevision()) }
