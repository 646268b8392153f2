package wal

// Stats is what `kontiki store status` says about the log.
type Stats struct {
	First    uint64 `json:"first"`    // index of the first entry, 0 if there is none
	Last     uint64 `json:"last"`     // index of the last entry, 0 if there is none
	Segments int    `json:"segments"` // files that are part of the log
	Bytes    int64  `json:"bytes"`    // of these files
	Used     int64  `json:"used"`     // of these, bytes that were written, deleted entries included
}

// Stats returns the state of the log, also of a closed one.
func (l *Log) Stats() Stats {
	l.mu.RLock()
	defer l.mu.RUnlock()
	var st Stats
	if !l.bounds.empty() {
		st.First, st.Last = l.bounds.first, l.bounds.next-1
	}
	st.Segments = len(l.segments)
	for _, s := range l.segments {
		st.Bytes += s.size
		st.Used += s.end
	}
	return st
}
