// Package rejoin lets a follower go on after it was sent a snapshot, or after its disk was full, whatever its log
// holds. It stands between hashicorp/raft 1.8.0 and two things that raft uses, the log store and the transport's
// incoming messages, and is needed with every log store, monotonic or not.
//
// # What should happen
//
// A snapshot replaces the log up to its last entry (index S, term T). Raft paper, figure 13: if the
// follower has an entry S with term T, the entries after it stay; otherwise the whole log goes. And
// the leader's next message, "after S, T comes …", is accepted, since the snapshot is known to be right.
//
// # What raft 1.8.0 does
//
// It never looks at the follower's entry S (hashicorp/raft issue 697, open), and it keeps believing
// that the log ends at L, where it ended before. If L < S, all is well. If L ≥ S:
//
//   - With a log store that is not monotonic, the last TrailingLogs entries stay (compactLogs). If they
//     conflict with the snapshot, "after S, T" is compared with the old entry S, and refused. The leader
//     has nothing older than the snapshot to send, and sends the snapshot: again and again. Worse,
//     old entries below S that stay, never committed, can be sent to others should the member lead.
//   - With a monotonic one, the log is emptied (removeOldLogs). "After S, T" is looked up in the empty
//     log, and refused as well: the same circle. If it comes later, "after L", it is accepted from memory,
//     and raft panics when it wants to apply S+1. And entries beyond S that agreed with the leader's,
//     that the follower had acknowledged and that may be committed thanks to it, are gone.
//   - If L = S, not even the log is asked: the term of the last entry is in memory.
//
// A follower gets a snapshot below L after it led a minority and wrote entries of its own; or when its
// disk was full for some time, since each refused append makes the leader try one entry earlier.
//
// The same circle without any snapshot being sent at first: the follower has a snapshot of its own up to S, and
// more entries after S that conflict than TrailingLogs says. Compaction then deletes entry S itself, and
// "after S, T" is refused. (The cluster simulation found it.)
//
// And a third case, a disk that is full: when a conflict was truncated and the append that comes next fails, raft goes
// on believing that its log ends at L (its own "TODO" in appendEntries). It refuses all that comes until it is
// restarted. Worse, if an old leader leads again and sends "after L, old term comes …", it accepts that from memory, and
// acknowledges entries behind a hole.
//
// # The remedy
//
// Guard corrects it in six places:
//
//  1. A snapshot whose entry S the member has, in its log or in a snapshot, brings nothing: it
//     becomes a heartbeat with the same answer. Nothing that was acknowledged is ever deleted.
//  2. When raft empties the log after it installed another one, entries after S stay, if there are any.
//     They are entries raft still believes in, and they all conflict: the first append finds that and
//     truncates them in the way of paper 5.3, and raft's memory is right again.
//  3. "After S, T" for the snapshot that was installed last is passed on as "from the beginning": the
//     snapshot vouches for it. Then nothing is compared with entries that are not there.
//  4. The commit index that comes with an append is at most the append's last entry (paper, figure 2:
//     "index of last new entry"); raft takes its own last entry instead, which may be one that conflicts.
//  5. Compaction leaves one entry more than raft says, so the last entry of the member's own snapshot stays.
//  6. After a truncation, the append is tried until the disk takes it (append.go). Until then raft, whose memory is
//     wrong, says nothing to anybody.
//
// In between the member votes as it did before the snapshot, for its last entry is the same. It cannot win,
// since its log lacks the committed entry S, and it does not help others to win who could not before.
//
// New puts log and snapshot in order after a crash between the two.
//
// Read first: guard.go.
package rejoin
