package raftstore

import (
	"io"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// SnapshotSender is a snapshot on its way to a member that the log does not reach back to (RF-09).
type SnapshotSender struct {
	To    string `json:"to"`
	Sent  int64  `json:"sent"` // bytes
	Bytes int64  `json:"bytes"`
	index uint64 // of its last entry
}

// sending keeps account of the snapshots that are being sent.
type sending struct {
	meter snapshotMeter

	mu     sync.Mutex // guards everything below
	active []*SnapshotSender
	held   map[uint64]time.Time // until when the log behind a snapshot stays, see heldlog.go
}

func (s *sending) list() (list []SnapshotSender) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.active {
		list = append(list, *x)
	}
	return list
}

func (s *sending) begin(to string, index uint64, bytes int64) *SnapshotSender {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := &SnapshotSender{To: to, Bytes: bytes, index: index}
	s.active = append(s.active, x)
	return x
}

func (s *sending) end(x *SnapshotSender) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold(x.index)
	s.active = slices.DeleteFunc(s.active, func(y *SnapshotSender) bool { return x == y })
}

// countingReader notes how much of a snapshot has been read from it.
type countingReader struct {
	io.Reader
	sending *sending
	x       *SnapshotSender
}

func (r countingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.sending.mu.Lock()
	defer r.sending.mu.Unlock()
	r.x.Sent += int64(n)
	return n, err
}

// InstallSnapshot implements raft.Transport.
func (t transport) InstallSnapshot(id raft.ServerID, target raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	x := t.sending.begin(string(id), args.LastLogIndex, args.Size)
	defer t.sending.end(x)
	start := time.Now()
	err := t.NetworkTransport.InstallSnapshot(id, target, args, resp, countingReader{data, t.sending, x})
	t.sending.meter.add(time.Since(start), err == nil && resp.Success)
	return err
}
