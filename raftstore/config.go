package raftstore

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/hashicorp/raft"

	"kontiki/mvcc"
	"kontiki/raftstore/wal"
)

// Peer is one member as the others know it.
type Peer struct {
	ID      string `json:"id"`      // unique for ever
	Address string `json:"address"` // where its Network is reached
}

// Config says what a Member is.
type Config struct {
	// Dir holds everything that the member keeps: raft.db (term and vote), log/ (the raft log), mvcc.db
	// (the store), snapshots/ and history.json (how old history is). It is created if need be.
	Dir string
	// NodeID is the member's name in the cluster. It must never change for a Dir.
	NodeID string
	// Network connects the member to the others. Nil is good for a member that stays alone.
	// The member closes it.
	Network Network
	// Bootstrap makes a new Dir the beginning of a cluster of Peers. The members of a new cluster all
	// set it, with the same Peers. It does nothing for a Dir that is in use already.
	Bootstrap bool
	// Peers are the voters to begin with, this member included; by default this member alone.
	Peers []Peer
	// Join makes a new Dir a new member of an existing cluster: the members at these addresses are asked, in
	// turn, until one has it added. A Dir that is in use must belong to their cluster (ErrOtherCluster). Not with Bootstrap.
	Join []string
	// JoinTimeout is how long it asks, if nobody lets it in (ErrNotLetIn); by default for ever.
	JoinTimeout time.Duration
	// Name is what people call the member, unique in the cluster, and a name that its certificate is for; may be empty.
	Name string
	// ClientURLs are where clients reach this member, as other members are to say; may be empty.
	ClientURLs []string
	// RaftLog is where a new Dir keeps the raft log: LogWAL, the default, or LogBoltDB. For one in use it may
	// only say what is so already, or nothing.
	RaftLog string
	// RequestTimeout bounds how long a request looks for a leader and waits for its answer, if its
	// context does not end earlier; 5 s by default.
	RequestTimeout time.Duration
	// SnapshotEntries is about how many raft entries lie between snapshots; 10,000 by default. Half as
	// many stay in the log behind one, for members that were away.
	SnapshotEntries uint64
	// SnapshotInterval is how often it is looked whether a snapshot is due, roughly; 30 s by default.
	SnapshotInterval time.Duration
	// HistoryRetention is how old history may become: the leader compacts what is older (retention.go). By
	// default all of it is kept until somebody compacts.
	HistoryRetention time.Duration
	// OnDisk, if set, runs each write to raft's log, and to its term and vote: a simulation makes the disk
	// slow with it.
	OnDisk func(write func() error) error
	// LogDirectory, if set, is where LogWAL keeps its segments, instead of in Dir: a simulation has disks of its own.
	LogDirectory wal.Directory
	// LogSegmentBytes is how large the segments of LogWAL are; 16 MiB by default.
	LogSegmentBytes int64
	// Clock is what time is measured with that passes between requests: that of leases, and the age of history.
	// The default, time.Now, is monotonic: it does not follow when somebody sets the time of day. A simulation
	// gives each member a clock of its own.
	Clock func() time.Time
	// LogBytes bounds the raft log in bytes, as SnapshotEntries does in entries; 128 MiB by default. The log of a
	// store that is larger than half of it may become about as large as the store (logbytes.go).
	LogBytes int64
	// QuotaBytes is how large the store may grow, free pages not counted, before NOSPACE is raised; 8 GiB by default.
	QuotaBytes int64
	// MinFreeBytes is how much of the disk has to be free, else NOSPACE is raised as well; 64 MiB by default.
	MinFreeBytes int64
	// HashInterval is how often the leader compares the content of all members, 10 minutes by default.
	HashInterval time.Duration
	// Store tunes the mvcc store.
	Store mvcc.Options
	// Log is slog.Default() by default.
	Log *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	if c.Dir == "" || c.NodeID == "" {
		return c, errors.New("raftstore: Dir and NodeID are required")
	}
	c.RequestTimeout = cmp.Or(c.RequestTimeout, 5*time.Second)
	c.SnapshotEntries = cmp.Or(c.SnapshotEntries, 10_000)
	if c.SnapshotInterval == 0 {
		c.SnapshotInterval = 30 * time.Second
	}
	c.LogBytes = cmp.Or(c.LogBytes, 128<<20)
	c.QuotaBytes = cmp.Or(c.QuotaBytes, 8<<30)
	c.MinFreeBytes = cmp.Or(c.MinFreeBytes, 64<<20)
	c.HashInterval = cmp.Or(c.HashInterval, 10*time.Minute)
	if c.RaftLog != "" && c.RaftLog != LogWAL && c.RaftLog != LogBoltDB {
		return c, fmt.Errorf("raftstore: RaftLog %q is neither %q nor %q", c.RaftLog, LogWAL, LogBoltDB)
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Store.Log == nil {
		c.Store.Log = c.Log
	}
	if c.Network == nil {
		c.Network = NewMemoryNetwork().Join(c.NodeID)
	}
	if len(c.Peers) == 0 {
		c.Peers = []Peer{{ID: c.NodeID, Address: c.Network.Address()}}
	}
	return c, c.checkPeers()
}

func (c Config) checkPeers() error {
	if c.Bootstrap && len(c.Join) > 0 {
		return errors.New("raftstore: a member either begins a cluster (Bootstrap) or joins one (Join)")
	}
	for _, p := range c.Peers {
		if p.ID == c.NodeID {
			return nil
		}
	}
	return fmt.Errorf("raftstore: NodeID %q is not among Peers", c.NodeID)
}

// Raft's clocks. A heartbeat may wait in the follower's main loop (see transport.go), so the timeouts leave room. A disk
// that takes longer than that is heartbeats.go's to deal with.
const (
	heartbeatTimeout   = time.Second
	electionTimeout    = time.Second
	leaderLeaseTimeout = 500 * time.Millisecond
	// commitTimeout is how often, once to twice, followers are sent the commit index when nothing else is sent to them. One that
	// was started anew needs it; of new commits they hear sooner (notices.go).
	commitTimeout = 100 * time.Millisecond
	// maxAppendEntries times maxEntryBytes is about the most that one AppendEntries carries: 8 MiB.
	maxAppendEntries = 32
)

func (c Config) raftConfig() *raft.Config {
	rc := raft.DefaultConfig()
	rc.LocalID = raft.ServerID(c.NodeID)
	rc.HeartbeatTimeout = heartbeatTimeout
	rc.ElectionTimeout = electionTimeout
	rc.LeaderLeaseTimeout = leaderLeaseTimeout
	rc.CommitTimeout = commitTimeout
	rc.MaxAppendEntries = maxAppendEntries
	rc.BatchApplyCh = true
	rc.SnapshotInterval = c.SnapshotInterval
	rc.SnapshotThreshold = c.SnapshotEntries
	rc.TrailingLogs = max(c.SnapshotEntries/2, 1) // package rejoin wants one
	rc.NoSnapshotRestoreOnStart = true
	rc.NoLegacyTelemetry = true
	rc.Logger = raftLogger(c.Log)
	return rc
}

func (c Config) configuration() raft.Configuration {
	var servers []raft.Server
	for _, p := range c.Peers {
		servers = append(servers, raft.Server{ID: raft.ServerID(p.ID), Address: raft.ServerAddress(p.Address)})
	}
	return raft.Configuration{Servers: servers}
}
