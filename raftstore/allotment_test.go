package raftstore

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"kontiki/mvcc"
)

// TestCommandsOfAnEntry: what is applied is what the log shows (decodeEntry), however many proposals share an allotment.
func TestCommandsOfAnEntry(t *testing.T) {
	var data [][]byte
	for i := range 2*maxAllotted + 10 {
		key := []byte(fmt.Sprint("k", i))
		c := mvcc.Command{Txn: &mvcc.TxnRequest{
			Compare: []mvcc.Compare{{Key: key, Number: int64(i)}},
			Then:    []mvcc.Op{{Put: &mvcc.PutRequest{Key: key, Value: []byte("v"), PrevKV: i%2 == 0}}},
			Else:    []mvcc.Op{{Range: &mvcc.RangeRequest{Key: key, Limit: int64(i)}}},
		}}
		if i%7 == 0 {
			c = everything()
		}
		p, err := encodeProposalIn(uint64(i%3), Origin{User: "u", RequestID: fmt.Sprint(i)}, c)
		require.NoError(t, err)
		data = append(data, p)
	}
	entry := encodeEntry(data)
	commands, err := decodeCommands(entry, 2)
	require.NoError(t, err)
	shown, err := decodeEntry(entry)
	require.NoError(t, err)
	require.Len(t, commands, len(shown))
	for i, p := range shown {
		if p.term == 1 {
			require.Equal(t, mvcc.Command{Checkpoint: []mvcc.LeaseCheckpoint{}}, commands[i], "of another term")
		} else {
			require.Equal(t, p.command, commands[i])
		}
	}
}
