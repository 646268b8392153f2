// Package wal is the log of a raft member: an append-only log in checksummed, zero-filled and recycled
// segment files. *Log implements hashicorp/raft's LogStore and MonotonicLogStore. Terms and votes are
// not kept here; they are in raft-boltdb, the stable store.
//
// docs/formats/raft-log.md shows the bytes.
//
// # Why it is fast
//
// A batch of entries is one write and one fdatasync, into blocks that were written before (with zeros,
// or with an older part of the log): the file system has nothing to allocate and no journal to commit.
// The next segment is made ready in the background (prepare.go) when the current one is half full.
//
// # Everything is a record
//
// Segments are only ever appended to. That entries were deleted is a record as well: "the log now ends
// at i" (a conflict with the leader, Raft paper 5.3) or "the log now begins at i" (compaction). Opening
// the log replays the records (recover.go); so a deletion is durable and atomic for the same reason
// as an append, and no other file has to agree. Segments whose entries are all gone are then recycled,
// oldest first.
//
// # What a nil error promises
//
//   - StoreLogs, DeleteRange: it is on disk, all of it, and survives any crash. After an error the log
//     is what it was before. If a crash comes before the return, or before the next success after an
//     error, what was asked for may be found done after all, or some first entries of a batch: nobody
//     was told that they are there, and raft can live with either.
//   - GetLog: the entry is what was stored; its checksums were verified for this read.
//   - Open: every record up to the last one was verified.
//
// # Damage
//
// A write that was torn by a crash can only be the last batch of the last segment. Open cuts what is
// torn of it and says so in the log (Options.Log). Damage anywhere else is ErrCorrupt with file and
// offset, and nothing on disk is changed: each record says where its batch began, and a batch that began
// after the damaged place proves that what stood there had been acknowledged. Close appends such a proof.
// The one case that cannot be told apart from a torn write is a damaged last batch after a crash.
//
// A record is valid only in the segment and at the place where it was written: its checksum is mixed
// with the segment's salt, drawn anew each time a file is used, and with its offset. What is left of a
// file's earlier life is therefore never taken for part of the log.
//
// # Monotonic
//
// Indexes have no gaps: StoreLogs wants the index after the last, and only an empty log may go on
// anywhere (after a snapshot was installed). IsMonotonic says so to raft, which then empties the log
// after it installed a snapshot (removeOldLogs), where it leaves the TrailingLogs last entries in
// other stores (compactLogs), entries that may conflict with the snapshot.
//
// That alone is not enough for raft 1.8.0: it forgets that it emptied the log (hashicorp/raft issue
// 697), and it empties also what it should keep. Package raftstore/rejoin has the whole story and
// the remedy, for this store and every other.
//
// # Limits
//
// One process per directory (flock). One batch has at most 1 GiB. An open log needs 16 bytes of memory
// for each entry, and one buffer of at most 1 MiB. On disk there is at most one unused segment beside
// those with entries, or two for a moment.
//
// Read first: log.go, then append.go and recover.go.
package wal
