package wal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

const (
	// segmentHeaderBytes is one disk sector, which is written whole or not at all.
	segmentHeaderBytes = 512
	segmentHeaderUsed  = 56
	segmentMagic       = "KTKWAL1\n"
	segmentSuffix      = ".seg"

	// controlReserve is kept free of entries at the end of a segment, for records that delete: on a
	// full disk they must go through, since they are what makes room.
	controlReserve = 4 << 10
)

// segmentHeader is the first sector of a segment. It is written together with the segment's first batch;
// before that the sector is zero.
type segmentHeader struct {
	sequence uint64 // the number in the file's name
	salt     uint64 // of this life of the file: mixed into every record's checksum
	first    uint64 // the log's bounds when the segment was begun, see bounds
	next     uint64
	prevEnd  uint64 // offset at which the records of the segment before it end
}

func (h segmentHeader) appendTo(b []byte) []byte {
	var p [segmentHeaderBytes]byte
	copy(p[:], segmentMagic)
	for i, v := range []uint64{h.sequence, h.salt, h.first, h.next, h.prevEnd} {
		binary.BigEndian.PutUint64(p[8+8*i:], v)
	}
	sum := crc32.Checksum(p[:segmentHeaderUsed-4], castagnoli)
	binary.BigEndian.PutUint32(p[segmentHeaderUsed-4:], sum)
	return append(b, p[:]...)
}

// decodeSegmentHeader returns nil and no error for an unused segment.
func decodeSegmentHeader(b []byte) (*segmentHeader, error) {
	if allZero(b) {
		return nil, nil
	}
	if len(b) < segmentHeaderBytes || string(b[:8]) != segmentMagic {
		return nil, fmt.Errorf("not a segment header")
	}
	if binary.BigEndian.Uint32(b[segmentHeaderUsed-4:]) != crc32.Checksum(b[:segmentHeaderUsed-4], castagnoli) {
		return nil, fmt.Errorf("checksum of the segment header is wrong")
	}
	field := func(i int) uint64 { return binary.BigEndian.Uint64(b[8+8*i:]) }
	return &segmentHeader{field(0), field(1), field(2), field(3), field(4)}, nil
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// segment is a file of the log, and where its entries are. Its live entries have successive indexes: those
// after a truncation replace those before it.
type segment struct {
	segmentHeader
	file  File
	size  int64
	end   int64  // where the next record goes
	lo    uint64 // never less than hi of the segment before
	spots []spot // of entries lo, lo+1, …; also of those that were compacted since
}

// spot is where a record is.
type spot struct{ offset, bodyBytes uint32 }

func segmentName(sequence uint64) string { return fmt.Sprintf("%016x%s", sequence, segmentSuffix) }

func parseSegmentName(name string) (sequence uint64, ok bool) {
	hex, ok := strings.CutSuffix(name, segmentSuffix)
	if !ok || len(hex) != 16 {
		return 0, false
	}
	sequence, err := strconv.ParseUint(hex, 16, 64)
	return sequence, err == nil && name == segmentName(sequence)
}

func (s *segment) name() string { return segmentName(s.sequence) }

// hi is the index after that of the last live entry.
func (s *segment) hi() uint64 { return s.lo + uint64(len(s.spots)) }

func (s *segment) add(index uint64, at spot) {
	if index != s.hi() { // the log was empty and goes on elsewhere
		s.lo, s.spots = index, nil
	}
	s.spots = append(s.spots, at)
}

// truncate forgets entries from index on.
func (s *segment) truncate(index uint64) {
	switch {
	case index <= s.lo:
		s.lo, s.spots = index, nil
	case index < s.hi():
		s.spots = s.spots[:index-s.lo]
	}
}

func (s *segment) corrupt(offset int64, reason string) error {
	return &CorruptError{File: s.name(), Offset: offset, Reason: reason}
}
