package raftstore

import "github.com/hashicorp/raft"

// slowLog and slowStable are a log and a stable store on a disk that takes its time (Config.DiskDelay).
type slowLog struct {
	raft.LogStore
	delay func()
}

type slowStable struct {
	raft.StableStore
	delay func()
}

func slowly(delay func(), write func() error) error {
	delay()
	defer delay()
	return write()
}

// StoreLog implements raft.LogStore.
func (l slowLog) StoreLog(entry *raft.Log) error {
	return slowly(l.delay, func() error { return l.LogStore.StoreLog(entry) })
}

// StoreLogs implements raft.LogStore.
func (l slowLog) StoreLogs(entries []*raft.Log) error {
	return slowly(l.delay, func() error { return l.LogStore.StoreLogs(entries) })
}

// DeleteRange implements raft.LogStore.
func (l slowLog) DeleteRange(first, last uint64) error {
	return slowly(l.delay, func() error { return l.LogStore.DeleteRange(first, last) })
}

// Set implements raft.StableStore.
func (l slowStable) Set(key, value []byte) error {
	return slowly(l.delay, func() error { return l.StableStore.Set(key, value) })
}

// SetUint64 implements raft.StableStore.
func (l slowStable) SetUint64(key []byte, value uint64) error {
	return slowly(l.delay, func() error { return l.StableStore.SetUint64(key, value) })
}
