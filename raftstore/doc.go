// Package raftstore replicates an mvcc store with Raft (hashicorp/raft): one Member is one voter,
// with its log, its store and its place in the cluster.
//
// # A write
//
// Txn turns the request into a proposal (entry.go) and hands it to the leader: to the proposer of
// this member (proposer.go), or over the wire (forward.go) to that of another. The proposer packs the
// proposals that wait into one raft entry. The leader writes it to its log while it sends it to the others
// (package leaderlog). When a quorum has the entry in its log, the leader among them, the state machine
// of every member (fsm.go) applies it to its mvcc store, and the leader's answers the callers.
//
// # A read
//
// Range at revision 0 is linearizable on every member. The leader (readindex.go) notes what it has
// applied, makes sure that it still leads, once for all reads that wait, and the member that was asked
// waits until it has applied as much itself. Reads of a given revision are local.
//
// # A lease
//
// Leases and what is attached to them are replicated; time is not. The leader measures it (lessor.go),
// writes down now and then what is left, and proposes to revoke a lease whose time is up.
//
// # Members
//
// A member joins as a learner (join.go) and is given its vote when it has caught up (steward.go). Changes are
// the leader's to make (change.go, members.go), from wherever they are asked for; who was removed finds out and stops
// (removed.go). Names, client addresses and alarms are notes in the store (membernote.go, alarm.go). A
// majority that is lost for good is recoverquorum.go, a backup snapshot.go and restore.go. What one can look at is in
// status.go, logreader.go, keyhistory.go, hashcheck.go and metrics.go.
//
// # Invariants
//
//   - A nil error from Txn means: in the log of a quorum, on disk, and applied by the leader.
//     ErrUnknownOutcome means: perhaps. Every other error means: not, and never.
//
//   - A proposal is never sent twice. Only one that certainly did not get into a log is tried again.
//
//   - The mvcc file holds the applied index beside the data, so raft's own snapshots are not restored
//     at start (NoSnapshotRestoreOnStart); whoever writes a snapshot first makes the file durable up
//     to the snapshot's index (fsm.go), and Open restores one that the file is behind of (recover.go).
//
//   - What a heartbeat changes, it changes in raft's main loop, never beside it (transport.go says why).
//
// Read first: member.go, then proposer.go and fsm.go.
package raftstore
