package raftstore

import "github.com/hashicorp/raft"

// slowLog is a log and stable store on a disk that takes its time (Config.DiskDelay).
type slowLog struct {
	boltLog
	delay func()
}

func (l slowLog) slowly(write func() error) error {
	l.delay()
	defer l.delay()
	return write()
}

// StoreLog implements raft.LogStore.
func (l slowLog) StoreLog(entry *raft.Log) error {
	return l.slowly(func() error { return l.boltLog.StoreLog(entry) })
}

// StoreLogs implements raft.LogStore.
func (l slowLog) StoreLogs(entries []*raft.Log) error {
	return l.slowly(func() error { return l.boltLog.StoreLogs(entries) })
}

// DeleteRange implements raft.LogStore.
func (l slowLog) DeleteRange(first, last uint64) error {
	return l.slowly(func() error { return l.boltLog.DeleteRange(first, last) })
}

// Set implements raft.StableStore.
func (l slowLog) Set(key, value []byte) error {
	return l.slowly(func() error { return l.boltLog.Set(key, value) })
}

// SetUint64 implements raft.StableStore.
func (l slowLog) SetUint64(key []byte, value uint64) error {
	return l.slowly(func() error { return l.boltLog.SetUint64(key, value) })
}
