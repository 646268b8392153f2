package raftstore

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// TestPipelineEnds: after an answer that is no success, a sender is let go although nobody reads answers
// any more (see pipeline). Without the remedy this test hangs.
func TestPipelineEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewMemoryNetwork()
		var ends []transport
		for _, name := range []string{"a", "b"} {
			m := newMux(n.Join(name), anyone, nil)
			tr := newTransport(m, Config{Log: quiet()}, nil, nil)
			defer func() {
				tr.CloseStreams()
				require.NoError(t, errors.Join(tr.Close(), m.close()))
			}()
			ends = append(ends, tr)
		}
		stop := make(chan struct{})
		defer close(stop)
		go func() {
			for {
				select {
				case rpc := <-ends[1].Consumer():
					rpc.Respond(&raft.AppendEntriesResponse{Success: false}, nil)
				case <-stop:
					return
				}
			}
		}()
		p, err := ends[0].AppendEntriesPipeline("b", "b")
		require.NoError(t, err)
		req := &raft.AppendEntriesRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: 3, Addr: []byte("a")}}
		_, err = p.AppendEntries(req, &raft.AppendEntriesResponse{})
		require.NoError(t, err)
		require.False(t, (<-p.Consumer()).Response().Success)
		for range 10 { // more than the pipeline has room for
			_, err = p.AppendEntries(req, &raft.AppendEntriesResponse{})
		}
		require.Error(t, err)
		require.NoError(t, p.Close())
	})
}
