// Package leaderlog lets a leader write its log while the entries travel to the followers: one disk write and
// one round trip side by side, where hashicorp/raft 1.8.0 has one after the other. Raft thesis 10.2.1.
//
// # Where it stands
//
// Between raft and the store of its log. While the member leads, StoreLogs keeps entries in memory, the tail, and
// returns; a goroutine writes them. Raft sees one log, the durable part and the tail. In turn, who
// sends entries (raftstore's transport) holds each follower's answer until Written says that the leader has them, too.
//
//	          StoreLogs ─► tail ─► writer ─► durable log
//	raft ─►                                       │
//	          AppendEntries ─► follower ─► answer ┴─► raft
//
// # Why it is safe
//
// The thesis lets a leader count itself once it has written. Raft 1.8.0 counts the leader when StoreLogs returns, here
// too early. But an entry is committed when a majority has it, and a majority of two or more voters includes a
// follower, whose answer raft does not see before the leader has written the entry. So nothing is
// committed, let alone applied, that the leader does not have on disk: what was true before is true now.
//
// Everything else that raft promises because of its log it promises as a follower, or by other kinds of entry. So these are
// written, behind the tail, before StoreLogs returns:
//
//   - entries of a member that does not lead: its answer says that they are durable;
//   - entries of an only voter, whose word alone commits them;
//   - configurations, since the next one may make it the only voter, and the first entry of a term.
//
// And a member that does not lead any more writes the tail before it lets raft see an entry of it: raft takes
// what it finds in the log for durable, and answers the next leader that it has it.
//
// A vote is unchanged. A deposed leader with a tail asks more of a candidate than it must, until it is restarted: then
// the tail is gone, and nobody was told of it by this member as a follower.
//
// # When the disk fails
//
// Written returns the error, and the transport makes raft step down by it, as a failed StoreLogs does. The tail stays
// and is tried again before anything else is written: raft believes that it is there.
//
// # Limits
//
// The tail has at most 64 entries. With more, StoreLogs waits.
//
// Read first: log.go.
package leaderlog
