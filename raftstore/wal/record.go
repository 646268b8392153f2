package wal

import (
	"encoding/binary"
	"hash/crc32"
	"time"

	"github.com/hashicorp/raft"
)

const (
	recordHeaderBytes = 48
	recordAlign       = 8 // every record begins at a multiple of it
)

// kind says what a record does to the log.
type kind byte

const (
	kindEntry    kind = 1 // appends an entry
	kindTruncate kind = 2 // the log ends at index: later entries are gone
	kindCompact  kind = 3 // the log begins at index: earlier entries are gone
	kindClose    kind = 4 // nothing: all before it was acknowledged
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// recordHeader is what stands before the body of a record. The body of an entry is its extensions, then
// its data; the other kinds have none.
type recordHeader struct {
	bodySum         uint32
	bodyBytes       uint32
	batch           uint32 // offset of the first record that was written together with this one
	index, term     uint64
	kind            kind
	logType         raft.LogType
	extensionsBytes uint32
	appendedAt      int64 // nanoseconds since 1970, 0 for the zero time
}

// recordBytes is the room that a record needs in a segment.
func recordBytes(bodyBytes int) int64 {
	n := int64(recordHeaderBytes) + int64(bodyBytes)
	return (n + recordAlign - 1) / recordAlign * recordAlign
}

// record is a record in memory.
type record struct {
	recordHeader
	extensions, data []byte
}

func entryRecord(l *raft.Log) record {
	r := record{extensions: l.Extensions, data: l.Data}
	r.kind, r.logType, r.index, r.term = kindEntry, l.Type, l.Index, l.Term
	r.extensionsBytes = uint32(len(l.Extensions))
	r.bodyBytes = r.extensionsBytes + uint32(len(l.Data))
	if !l.AppendedAt.IsZero() {
		r.appendedAt = l.AppendedAt.UnixNano()
	}
	return r
}

// appendTo appends the bytes of the record for a place in a segment.
func (r *record) appendTo(b []byte, salt uint64, offset, batch int64) []byte {
	start := len(b)
	r.batch = uint32(batch)
	r.bodySum = crc32.Update(crc32.Checksum(r.extensions, castagnoli), castagnoli, r.data)
	b = r.appendHeader(b, salt, offset)
	b = append(b, r.extensions...)
	b = append(b, r.data...)
	var padding [recordAlign]byte
	return append(b, padding[:recordBytes(int(r.bodyBytes))-int64(len(b)-start)]...)
}

func (h *recordHeader) appendHeader(b []byte, salt uint64, offset int64) []byte {
	var p [recordHeaderBytes]byte
	binary.BigEndian.PutUint32(p[4:], h.bodySum)
	binary.BigEndian.PutUint32(p[8:], h.bodyBytes)
	binary.BigEndian.PutUint32(p[12:], h.batch)
	binary.BigEndian.PutUint64(p[16:], h.index)
	binary.BigEndian.PutUint64(p[24:], h.term)
	p[32], p[33] = byte(h.kind), byte(h.logType)
	binary.BigEndian.PutUint32(p[36:], h.extensionsBytes)
	binary.BigEndian.PutUint64(p[40:], uint64(h.appendedAt))
	binary.BigEndian.PutUint32(p[0:], headerSum(p[:], salt, offset))
	return append(b, p[:]...)
}

// headerSum is the checksum of a record's header for one place in one life of a segment file.
func headerSum(header []byte, salt uint64, offset int64) uint32 {
	var seed [16]byte
	binary.BigEndian.PutUint64(seed[0:], salt)
	binary.BigEndian.PutUint64(seed[8:], uint64(offset))
	return crc32.Update(crc32.Checksum(seed[:], castagnoli), castagnoli, header[4:recordHeaderBytes])
}

// decodeHeader reads a header that was written for offset in a segment that has segmentBytes. It is false
// if there is none.
func decodeHeader(b []byte, salt uint64, offset, segmentBytes int64) (h recordHeader, ok bool) {
	if len(b) < recordHeaderBytes || b[32] < byte(kindEntry) || b[32] > byte(kindClose) {
		return h, false
	}
	h.bodySum = binary.BigEndian.Uint32(b[4:])
	h.bodyBytes = binary.BigEndian.Uint32(b[8:])
	h.batch = binary.BigEndian.Uint32(b[12:])
	h.index = binary.BigEndian.Uint64(b[16:])
	h.term = binary.BigEndian.Uint64(b[24:])
	h.kind, h.logType = kind(b[32]), raft.LogType(b[33])
	h.extensionsBytes = binary.BigEndian.Uint32(b[36:])
	h.appendedAt = int64(binary.BigEndian.Uint64(b[40:]))
	ok = h.extensionsBytes <= h.bodyBytes && int64(h.batch) <= offset &&
		offset+recordBytes(int(h.bodyBytes)) <= segmentBytes &&
		binary.BigEndian.Uint32(b) == headerSum(b, salt, offset)
	return h, ok
}

// entry makes raft's form of an entry. It keeps body.
func (h *recordHeader) entry(body []byte, l *raft.Log) {
	*l = raft.Log{Index: h.index, Term: h.term, Type: h.logType}
	n := h.extensionsBytes
	if n > 0 {
		l.Extensions = body[:n:n]
	}
	if len(body) > int(n) {
		l.Data = body[n:]
	}
	if h.appendedAt != 0 {
		l.AppendedAt = time.Unix(0, h.appendedAt)
	}
}
