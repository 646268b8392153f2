package mvcc

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// Hash is the fingerprint of the store's content as of a revision.
type Hash [sha256.Size]byte

// HashAt computes the fingerprint of all keys that existed at a revision (0: the newest), with their
// values, leases and revisions, and returns it with the revision it is of. Two members have the same
// hash at the same revision, or one of them is wrong, whatever each has compacted.
func (s *Store) HashAt(revision int64) (Hash, int64, error) {
	found, v, err := s.find(RangeRequest{Key: []byte{0}, End: []byte{0}, Revision: revision})
	if err != nil {
		return Hash{}, 0, err
	}
	defer v.close()
	if revision <= 0 {
		revision = found.revision
	}
	h := sha256.New()
	for _, selected := range found.versions {
		kv, err := v.keyValue(selected.rev, false)
		if err != nil {
			return Hash{}, 0, err
		}
		hashKeyValue(h, kv)
	}
	return Hash(h.Sum(nil)), revision, nil
}

func hashKeyValue(h hash.Hash, kv KeyValue) {
	var b []byte
	for _, n := range []int64{kv.CreateRevision, kv.ModRevision, kv.Version, kv.Lease, int64(len(kv.Key)), int64(len(kv.Value))} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	h.Write(append(b, kv.Key...))
	h.Write(kv.Value)
}
