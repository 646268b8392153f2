package raftstore

import (
	"encoding/hex"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kontiki/internal/docbytes"
	"kontiki/mvcc"
)

// TestFormatOfAnEntry pins the bytes that docs/formats/raft-entry.md shows.
func TestFormatOfAnEntry(t *testing.T) {
	p, err := encodeProposal(Origin{User: "u"}, mvcc.Command{Txn: new(putTxn("a", "1"))})
	require.NoError(t, err)
	want := "01 01 0f  01 0175 00 00  00  01 02 0161 0131 00 00  00"
	got := hex.EncodeToString(encodeEntry([][]byte{p}))
	require.Equal(t, strings.ReplaceAll(want, " ", ""), got)
	page, err := docbytes.In("../docs/formats/raft-entry.md")
	require.NoError(t, err)
	require.Contains(t, page, got)
}

// TestFramesAreDocumented: the page has a row for each kind of frame.
func TestFramesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/formats/raft-entry.md")
	require.NoError(t, err)
	code, err := os.ReadFile("frame.go")
	require.NoError(t, err)
	kinds := regexp.MustCompile(`(?m)^\tframe[A-Za-z]+ += (\d+) `).FindAllStringSubmatch(string(code), -1)
	require.Greater(t, len(kinds), 20)
	for _, kind := range kinds {
		require.Contains(t, string(page), "\n| "+kind[1]+" ", kind[0])
	}
}
