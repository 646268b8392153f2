package raftstore

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kontiki/mvcc"
)

// TestFormatOfAnEntry pins the bytes that docs/formats/raft-entry.md shows.
func TestFormatOfAnEntry(t *testing.T) {
	p, err := encodeProposal(Origin{User: "u"}, mvcc.Command{Txn: new(putTxn("a", "1"))})
	require.NoError(t, err)
	want := "01 01 0f  01 0175 00 00  00  01 02 0161 0131 00 00  00"
	require.Equal(t, strings.ReplaceAll(want, " ", ""), hex.EncodeToString(encodeEntry([][]byte{p})))
}
