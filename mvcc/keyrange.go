package mvcc

import "bytes"

// keyRange is the keys that a request is about, in the convention of RangeRequest: End nil is one
// key, End "\x00" is everything from key on, anything else is the half-open interval [key, end).
type keyRange struct {
	key, end []byte
}

func (r keyRange) single() bool    { return len(r.end) == 0 }
func (r keyRange) openEnded() bool { return len(r.end) == 1 && r.end[0] == 0 }

func (r keyRange) contains(key []byte) bool {
	if r.single() {
		return bytes.Equal(key, r.key)
	}
	return bytes.Compare(key, r.key) >= 0 && r.before(key)
}

// before reports whether key is left of the range's end.
func (r keyRange) before(key []byte) bool {
	return r.openEnded() || bytes.Compare(key, r.end) < 0
}
