package etcdapi

import (
	"crypto/sha256"
	"hash"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// snapshotChunk is how much of a snapshot goes into a message.
const snapshotChunk = 64 << 10

// Snapshot implements pb.MaintenanceServer: the store's file, then its SHA-256. How much remains is an
// estimate while the file is on its way, since it may grow.
func (s *maintenanceServer) Snapshot(_ *pb.SnapshotRequest, stream pb.Maintenance_SnapshotServer) error {
	state, err := s.member.Status()
	if err != nil {
		return toStatus(err)
	}
	w := &snapshotWriter{stream: stream, sum: sha256.New(), remaining: state.Store.FileBytes}
	if err := s.member.WriteSnapshot(w); err != nil {
		return toStatus(err)
	}
	return stream.Send(&pb.SnapshotResponse{Blob: w.sum.Sum(nil), Version: storageVersion})
}

// snapshotWriter sends what is written to it.
type snapshotWriter struct {
	stream    pb.Maintenance_SnapshotServer
	sum       hash.Hash
	remaining int64
}

// Write implements io.Writer.
func (w *snapshotWriter) Write(b []byte) (n int, err error) {
	for len(b) > 0 {
		// gRPC may keep what it is given, and the caller goes on using b.
		part := append([]byte(nil), b[:min(len(b), snapshotChunk)]...)
		w.remaining = max(0, w.remaining-int64(len(part)))
		err := w.stream.Send(&pb.SnapshotResponse{Blob: part, RemainingBytes: uint64(w.remaining), Version: storageVersion})
		if err != nil {
			return n, err
		}
		w.sum.Write(part)
		n, b = n+len(part), b[len(part):]
	}
	return n, nil
}
