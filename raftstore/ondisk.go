package raftstore

import "github.com/hashicorp/raft"

// onDisk runs a write to disk; Config.OnDisk may be around it.
type onDisk func(write func() error) error

// diskLog and diskStable are a log and a stable store whose writes go through Config.OnDisk.
type diskLog struct {
	raft.LogStore
	onDisk onDisk
}

type diskStable struct {
	raft.StableStore
	onDisk onDisk
}

var _ raft.MonotonicLogStore = diskLog{}

// IsMonotonic implements raft.MonotonicLogStore, as the log itself does.
func (l diskLog) IsMonotonic() bool {
	m, ok := l.LogStore.(raft.MonotonicLogStore)
	return ok && m.IsMonotonic()
}

// StoreLog implements raft.LogStore.
func (l diskLog) StoreLog(entry *raft.Log) error {
	return l.onDisk(func() error { return l.LogStore.StoreLog(entry) })
}

// StoreLogs implements raft.LogStore.
func (l diskLog) StoreLogs(entries []*raft.Log) error {
	return l.onDisk(func() error { return l.LogStore.StoreLogs(entries) })
}

// DeleteRange implements raft.LogStore.
func (l diskLog) DeleteRange(first, last uint64) error {
	return l.onDisk(func() error { return l.LogStore.DeleteRange(first, last) })
}

// Set implements raft.StableStore.
func (l diskStable) Set(key, value []byte) error {
	return l.onDisk(func() error { return l.StableStore.Set(key, value) })
}

// SetUint64 implements raft.StableStore.
func (l diskStable) SetUint64(key []byte, value uint64) error {
	return l.onDisk(func() error { return l.StableStore.SetUint64(key, value) })
}
