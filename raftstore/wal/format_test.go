package wal

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"kontiki/internal/docbytes"
)

// TestFormat pins the bytes that docs/formats/raft-log.md shows. If it fails, old logs cannot be read.
func TestFormat(t *testing.T) {
	h := segmentHeader{sequence: 2, salt: 0x1122334455667788, first: 1, next: 7, prevEnd: 0x1000}
	b := h.appendTo(nil)
	require.Len(t, b, segmentHeaderBytes)
	require.True(t, allZero(b[segmentHeaderUsed:]))
	require.Equal(t, "4b544b57414c310a"+"0000000000000002"+"1122334455667788"+"0000000000000001"+
		"0000000000000007"+"0000000000001000"+"00000000"+"684095b1", hex.EncodeToString(b[:segmentHeaderUsed]))

	e := entryRecord(&raft.Log{
		Index: 7, Term: 3, Type: raft.LogCommand, Data: []byte("put"), Extensions: []byte("x"), AppendedAt: time.Unix(0, 0x0a0b),
	})
	entry := hex.EncodeToString(e.appendTo(nil, h.salt, 512, 512))
	require.Equal(t, "517b7e47"+"29343a09"+"00000004"+"00000200"+
		"0000000000000007"+"0000000000000003"+"01"+"00"+"0000"+"00000001"+"0000000000000a0b"+
		"78"+"707574"+"00000000", entry)
	page, err := docbytes.In("../../docs/formats/raft-log.md")
	require.NoError(t, err)
	require.Contains(t, page, entry)

	cut := record{recordHeader: recordHeader{kind: kindTruncate, index: 5}}
	require.Len(t, cut.appendTo(nil, h.salt, 568, 568), recordHeaderBytes)
}
