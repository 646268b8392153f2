package raftstore

import "sync/atomic"

// counters count what happened since the member was opened.
type counters struct {
	hashChecks     atomic.Int64 // comparisons of all members' content
	hashMismatches atomic.Int64 // members that were found to differ
}
