package wal

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// damaged returns a log on disk with three segments, batches of one to three entries, and a truncation.
func damaged(t *testing.T, clean bool) (*memDirectory, []*raft.Log) {
	dir := newMemDirectory()
	l := openMem(t, dir)
	var want []*raft.Log
	for next := uint64(1); len(want) < 40; {
		var batch []*raft.Log
		for range 1 + len(want)%3 {
			batch = append(batch, &raft.Log{Index: next, Term: next, Data: slices.Repeat([]byte{byte(next)}, 700)})
			next++
		}
		require.NoError(t, l.StoreLogs(batch))
		want = append(want, batch...)
	}
	last := want[len(want)-1].Index
	require.NoError(t, l.DeleteRange(last-2, last))
	want = want[:len(want)-3]
	require.NoError(t, l.StoreLog(command(last-2, 99, "the last batch")))
	want = append(want, command(last-2, 99, "the last batch"))
	require.GreaterOrEqual(t, l.Stats().Segments, 3)
	if clean {
		require.NoError(t, l.Close())
		return dir, want
	}
	return dir.kill(), want
}

// TestBitFlips turns one bit at a time, everywhere. A log that was closed is complete or refused. After
// a crash, the last batch may be missing: that it was acknowledged is written nowhere.
func TestBitFlips(t *testing.T) {
	for _, clean := range []bool{true, false} {
		dir, want := damaged(t, clean)
		refused, cut := 0, 0
		for name, f := range dir.names {
			rng := rand.New(rand.NewPCG(1, 2))
			for at := 0; at < len(f.data); at += 1 + rng.IntN(64) {
				now := dir.clone()
				now.names[name].data[at] ^= 1 << rng.IntN(8)
				before := slices.Clone(now.names[name].data)
				l, err := OpenIn(now, modelOptions)
				if err != nil {
					var where *CorruptError
					require.ErrorAs(t, err, &where)
					require.Equal(t, name, where.File)
					require.LessOrEqual(t, where.Offset, int64(at))
					require.Equal(t, before, now.names[name].data, "nothing is changed")
					refused++
					continue
				}
				last, err := l.LastIndex()
				require.NoError(t, err)
				if !clean && last == want[len(want)-2].Index {
					cut++
					continue
				}
				requireBounds(t, l, 1, want[len(want)-1].Index)
				requireEntries(t, l, want)
			}
		}
		require.Greater(t, refused, 500)
		require.Equal(t, !clean, cut > 0)
	}
}

// TestDamageWhileOpen: a read finds it.
func TestDamageWhileOpen(t *testing.T) {
	dir := newMemDirectory()
	l := openMem(t, dir)
	require.NoError(t, l.StoreLogs(commands(1, 9, 1)))
	at := l.segments[0].spots[4].offset
	for _, in := range []uint32{0, 8, 20, recordHeaderBytes, recordHeaderBytes + 5} {
		data := dir.names[segmentName(1)].data
		data[at+in] ^= 4
		err := l.GetLog(5, &raft.Log{})
		require.ErrorIs(t, err, ErrCorrupt)
		require.ErrorContains(t, err, segmentName(1))
		data[at+in] ^= 4
	}
	requireEntries(t, l, commands(1, 9, 1))
}

// TestMissingFile: a segment that is gone is noticed, wherever it was.
func TestMissingFile(t *testing.T) {
	dir, _ := damaged(t, true)
	for _, sequence := range []uint64{1, 2} {
		now := dir.clone()
		delete(now.names, segmentName(sequence))
		before := len(now.names)
		_, err := OpenIn(now, modelOptions)
		require.ErrorIs(t, err, ErrCorrupt)
		require.Len(t, now.names, before, "nothing is changed")
	}
}

// TestTornBatch: of a batch that a crash tore, the intact records after the tear are not part of the log,
// neither now nor when the next batches end where they begin.
func TestTornBatch(t *testing.T) {
	dir := newMemDirectory()
	l := openMem(t, dir)
	entry := func(i uint64) *raft.Log {
		return &raft.Log{Index: i, Term: 1, Data: slices.Repeat([]byte{byte(i)}, sectorBytes-recordHeaderBytes)}
	}
	require.NoError(t, l.StoreLog(entry(1)))
	require.NoError(t, l.StoreLogs([]*raft.Log{entry(2), entry(3), entry(4)}))
	dir = dir.kill()
	data := dir.names[segmentName(1)].data
	clear(data[segmentHeaderBytes+sectorBytes : segmentHeaderBytes+2*sectorBytes]) // entry 2

	l = openMem(t, dir)
	requireBounds(t, l, 1, 1)
	require.NoError(t, l.StoreLog(entry(2)))
	l = openMem(t, dir.kill())
	requireBounds(t, l, 1, 2)
	require.NoError(t, l.StoreLog(entry(3)))
	l = openMem(t, l.dir.(*memDirectory).kill())
	requireBounds(t, l, 1, 3)
}

// TestFailedWrite: what a failed write left on disk does not come back after the next one.
func TestFailedWrite(t *testing.T) {
	dir := newMemDirectory()
	l := openMem(t, dir)
	require.NoError(t, l.StoreLogs(commands(1, 3, 1)))
	dir.failing = func(write bool) error {
		if write {
			return nil
		}
		return errIO // all was written, perhaps
	}
	require.ErrorIs(t, l.StoreLogs(commands(4, 9, 1)), errIO)
	dir.failing = nil
	requireBounds(t, l, 1, 3)
	require.NoError(t, l.StoreLog(commands(4, 4, 1)[0]))
	require.Equal(t, 2, l.Stats().Segments)
	l = openMem(t, dir.kill())
	requireBounds(t, l, 1, 4)
}

// FuzzRecord: a header that the decoder accepts is one that the encoder writes, for this place only.
func FuzzRecord(f *testing.F) {
	r := entryRecord(allFields)
	f.Add(r.appendTo(nil, 7, 512, 512), uint64(7), int64(512))
	f.Add([]byte{}, uint64(0), int64(0))
	f.Fuzz(func(t *testing.T, b []byte, salt uint64, offset int64) {
		if offset < 0 || offset > maxSegmentBytes || len(b) < recordHeaderBytes {
			return
		}
		sum := headerSum(b, salt, offset) // most inputs would stop at the checksum
		binary.BigEndian.PutUint32(b, sum)
		h, ok := decodeHeader(b, salt, offset, maxSegmentBytes)
		if !ok {
			return
		}
		again, ok := decodeHeader(h.appendHeader(nil, salt, offset), salt, offset, maxSegmentBytes)
		require.True(t, ok)
		require.Equal(t, h, again)
		_, ok = decodeHeader(b, salt+1, offset, maxSegmentBytes)
		require.False(t, ok)
		_, ok = decodeHeader(b, salt, offset+recordAlign, maxSegmentBytes)
		require.False(t, ok)
		if body := b[recordHeaderBytes:]; int(h.bodyBytes) <= len(body) {
			var l raft.Log
			h.entry(body[:h.bodyBytes], &l)
			require.Equal(t, int(h.bodyBytes), len(l.Data)+len(l.Extensions))
		}
	})
}

// FuzzOpen: no bytes in a segment make Open panic, or report anything but damage; and what it opens can
// be read, written and opened again.
func FuzzOpen(f *testing.F) {
	salt := uint64(3)
	var b []byte
	for i := range uint64(5) {
		r := entryRecord(command(i+1, 1, "data"))
		b = r.appendTo(b, salt, segmentHeaderBytes+int64(len(b)), segmentHeaderBytes+int64(len(b)))
	}
	f.Add(b, uint64(1), uint64(1))
	f.Add(b[:100], uint64(0), uint64(0))
	f.Fuzz(func(t *testing.T, b []byte, first, next uint64) {
		dir := newMemDirectory()
		data := segmentHeader{sequence: 1, salt: salt, first: first, next: next}.appendTo(nil)
		data = append(append(data, b...), make([]byte, 1<<10)...)
		dir.names[segmentName(1)] = &memFile{dir: dir, data: data, disk: slices.Clone(data)}
		l, err := OpenIn(dir, modelOptions)
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			return
		}
		last, err := l.LastIndex()
		require.NoError(t, err)
		if last > 0 {
			require.NoError(t, l.GetLog(last, &raft.Log{}))
		}
		require.NoError(t, l.StoreLog(command(last+1, 9, "after")))
		require.NoError(t, l.Close())
		l = openMem(t, dir)
		requireEntries(t, l, []*raft.Log{command(last+1, 9, "after")})
	})
}
