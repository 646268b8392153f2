package raftstore

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"kontiki/mvcc"
)

// everything is a command that uses all that an entry can carry.
func everything() mvcc.Command {
	return mvcc.Command{Txn: &mvcc.TxnRequest{
		Compare: []mvcc.Compare{
			{Key: []byte("k"), Target: mvcc.CompareModRevision, Result: mvcc.Less, Number: -3},
			{Key: []byte("k"), End: []byte{0}, Target: mvcc.CompareValue, Result: mvcc.NotEqual, Value: []byte("v")},
		},
		Then: []mvcc.Op{
			{Put: &mvcc.PutRequest{Key: []byte("k"), Value: []byte("v"), Lease: 9, PrevKV: true}},
			{Put: &mvcc.PutRequest{Key: []byte("l"), IgnoreValue: true, IgnoreLease: true}},
			{Txn: &mvcc.TxnRequest{Else: []mvcc.Op{{Delete: &mvcc.DeleteRequest{Key: []byte("a"), End: []byte("b"), PrevKV: true}}}}},
		},
		Else: []mvcc.Op{{Range: &mvcc.RangeRequest{Key: []byte("a"), End: []byte{0}, Revision: 7, Limit: 8, KeysOnly: true, CountOnly: true}},
			{Range: &mvcc.RangeRequest{Key: []byte("a"), SortBy: mvcc.SortByValue, Descending: true,
				MinModRevision: 1, MaxModRevision: 2, MinCreateRevision: 3, MaxCreateRevision: 4}}},
	}}
}

func otherCommands() []mvcc.Command {
	return []mvcc.Command{
		{Grant: &mvcc.LeaseGrant{ID: -5, TTLSeconds: 60}},
		{Revoke: 1 << 60},
		{Checkpoint: []mvcc.LeaseCheckpoint{{ID: 7, RemainingMillis: 1500}, {ID: 8}}},
		{Note: &mvcc.Note{Name: "member/a", Value: []byte("v")}},
		{Note: &mvcc.Note{Name: "empty", Value: []byte{}}},
		{Note: &mvcc.Note{Name: "gone"}},
	}
}

// TestProposalForAnotherTermDoesNothing: what a leader concludes from what it remembers counts only
// while it is the same leader.
func TestProposalForAnotherTermDoesNothing(t *testing.T) {
	p, err := encodeProposalIn(3, Origin{User: "u"}, mvcc.Command{Revoke: 7})
	require.NoError(t, err)
	origin, c, err := decodeProposal(p)
	require.NoError(t, err)
	require.Equal(t, Origin{User: "u"}, origin)
	require.EqualValues(t, 7, c.Revoke)

	store, err := mvcc.Open(filepath.Join(t.TempDir(), storeFile), mvcc.Options{})
	require.NoError(t, err)
	defer store.Close()
	store.Apply(1, mvcc.Command{Grant: &mvcc.LeaseGrant{ID: 7, TTLSeconds: 1}})
	f, entry := &fsm{store: store}, encodeEntry([][]byte{p})
	require.NoError(t, f.Apply(&raft.Log{Index: 2, Term: 4, Data: entry}).([]mvcc.Result)[0].Err)
	require.Len(t, store.Leases(), 1)
	require.NoError(t, f.Apply(&raft.Log{Index: 3, Term: 3, Data: entry}).([]mvcc.Result)[0].Err)
	require.Empty(t, store.Leases())
}

func TestEntryKeepsEverything(t *testing.T) {
	origin := Origin{User: "kubernetes-admin", UserAgent: "kubectl/1.37", RequestID: "7"}
	first, err := encodeProposal(origin, everything())
	require.NoError(t, err)
	second, err := encodeProposal(Origin{}, mvcc.Command{Compact: 12})
	require.NoError(t, err)
	entry, want := [][]byte{first, second}, []mvcc.Command{everything(), {Compact: 12}}
	for _, c := range otherCommands() {
		b, err := encodeProposal(origin, c)
		require.NoError(t, err)
		entry, want = append(entry, b), append(want, c)
	}
	commands, err := decodeCommands(encodeEntry(entry), 1)
	require.NoError(t, err)
	require.Equal(t, want, commands)
	got, _, err := decodeProposal(first)
	require.NoError(t, err)
	require.Equal(t, origin, got)
}

func TestEntryOfAnotherVersionIsRefused(t *testing.T) {
	entry := encodeEntry(nil)
	entry[0]++
	_, err := decodeCommands(entry, 1)
	require.ErrorIs(t, err, ErrFormat)
	store, err := mvcc.Open(filepath.Join(t.TempDir(), storeFile), mvcc.Options{})
	require.NoError(t, err)
	defer store.Close()
	require.Panics(t, func() { (&fsm{store: store}).Apply(&raft.Log{Index: 1, Data: entry}) }, "a member must not skip what it does not understand")
}

func TestResultKeepsEverything(t *testing.T) {
	kv := mvcc.KeyValue{Key: []byte("k"), Value: []byte("v"), CreateRevision: 1, ModRevision: 2, Version: 3, Lease: 4}
	want := mvcc.TxnResult{Revision: 5, Succeeded: true, Ops: []mvcc.OpResult{
		{Range: &mvcc.RangeResult{Revision: 5, KVs: []mvcc.KeyValue{kv, kv}, Count: 3, More: true}},
		{Put: &mvcc.PutResult{PrevKV: &kv}},
		{Put: &mvcc.PutResult{}},
		{Delete: &mvcc.DeleteResult{Deleted: 2, PrevKVs: []mvcc.KeyValue{kv}}},
		{Txn: &mvcc.TxnResult{Revision: 4}},
	}}
	var e encoder
	e.result(&want)
	d := decoder{b: e.b}
	require.Equal(t, want, d.result(1))
	require.NoError(t, d.end())
}

func TestErrorsKeepTheirIdentityAcrossMembers(t *testing.T) {
	for _, err := range errorCodes {
		require.ErrorIs(t, decodeError(encodeError(err)), err)
	}
	unknown := decodeError(encodeError(errors.New("disk on fire")))
	require.EqualError(t, unknown, "leader: disk on fire")
	require.ErrorIs(t, decodeError(nil), ErrFormat)
	require.ErrorIs(t, decodeError([]byte{200}), ErrFormat)
}

// TestOriginIsInTheLog: who asked is found in the raft log, and not in the state.
func TestOriginIsInTheLog(t *testing.T) {
	m := openMember(t, Config{Dir: t.TempDir(), NodeID: "a", Bootstrap: true})
	defer func() { require.NoError(t, m.Close()) }()
	origin := Origin{User: "alice", UserAgent: strings.Repeat("x", 2*maxOriginBytes), RequestID: "42"}
	_, err := m.Txn(WithOrigin(t.Context(), origin), putTxn("k", "v"))
	require.NoError(t, err)
	var entry raft.Log
	require.NoError(t, m.log.GetLog(m.store.Applied(), &entry))
	d := decoder{b: entry.Data[1:]}
	require.Equal(t, 1, d.count())
	got, _, err := decodeProposal(d.bytes())
	require.NoError(t, err)
	require.Equal(t, Origin{User: "alice", UserAgent: strings.Repeat("x", maxOriginBytes), RequestID: "42"}, got)
}

func TestRequestTooLarge(t *testing.T) {
	m := openMember(t, Config{Dir: t.TempDir(), NodeID: "a", Bootstrap: true})
	defer func() { require.NoError(t, m.Close()) }()
	_, err := m.Txn(t.Context(), putTxn("k", strings.Repeat("v", MaxProposalBytes)))
	require.ErrorIs(t, err, ErrTooLarge)
	rev, err := m.Revision(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, rev)
	_, err = m.Txn(t.Context(), putTxn("k", strings.Repeat("v", MaxProposalBytes-1000)))
	require.NoError(t, err)
}

func TestWaitingProposalsShareAnEntry(t *testing.T) {
	m := openMember(t, Config{Dir: t.TempDir(), NodeID: "a", Bootstrap: true})
	defer func() { require.NoError(t, m.Close()) }()
	require.NoError(t, m.WaitReady(t.Context()))
	before := m.raft.LastIndex()

	p := newProposer(m.raft, time.Minute) // not started yet: everything waits
	data, err := encodeProposal(Origin{}, mvcc.Command{Txn: new(putTxn("k", "v"))})
	require.NoError(t, err)
	const n = 20
	done := make(chan error, n)
	for range n {
		go func() { _, err := p.propose(t.Context(), data); done <- err }()
	}
	ctx, cancel := context.WithCancel(t.Context())
	gaveUp := make(chan error, 1)
	go func() { _, err := p.propose(ctx, data); gaveUp <- err }()
	require.Eventually(t, func() bool { return len(p.queue) == n+1 }, time.Minute, time.Millisecond)
	cancel()
	require.Equal(t, context.Canceled, <-gaveUp, "raft did not have it: it certainly did not happen")

	p.start()
	for range n {
		require.NoError(t, <-done)
	}
	p.close()
	require.Equal(t, before+1, m.raft.LastIndex())
	rev, err := m.Revision(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1+n, rev)
	_, err = p.propose(t.Context(), data)
	require.Equal(t, ErrClosed, err)
}

func FuzzDecodeEntry(f *testing.F) {
	p, err := encodeProposal(Origin{User: "u"}, everything())
	require.NoError(f, err)
	f.Add(encodeEntry([][]byte{p, p}))
	f.Fuzz(func(t *testing.T, b []byte) {
		commands, err := decodeCommands(b, 1)
		if err != nil {
			require.ErrorIs(t, err, ErrFormat)
			return
		}
		for _, c := range commands { // what decodes can be encoded, and is the same then
			p, err := encodeProposal(Origin{}, c)
			require.NoError(t, err)
			_, again, err := decodeProposal(p)
			require.NoError(t, err)
			require.Equal(t, c, again)
		}
	})
}

func FuzzDecodeResult(f *testing.F) {
	e := encoder{}
	e.result(&mvcc.TxnResult{Revision: 3, Ops: []mvcc.OpResult{{Put: &mvcc.PutResult{PrevKV: &mvcc.KeyValue{Key: []byte("k")}}}}})
	f.Add(e.b)
	f.Fuzz(func(t *testing.T, b []byte) {
		d := decoder{b: b}
		r := d.result(1)
		if d.end() != nil {
			return
		}
		var e encoder
		e.result(&r)
		again := decoder{b: e.b}
		require.Equal(t, r, again.result(1))
	})
}

// TestFrameAllocatesAsItArrives: who announces a large frame and sends nothing gets no memory for it; a large one that
// comes is whole.
func TestFrameAllocatesAsItArrives(t *testing.T) {
	announced := binary.BigEndian.AppendUint32(nil, maxFrameBytes)
	announced = append(announced, make([]byte, 1000)...)
	per := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			_, err := readFrame(bufio.NewReader(bytes.NewReader(announced)))
			require.ErrorIs(b, err, io.ErrUnexpectedEOF)
		}
	}).AllocedBytesPerOp()
	require.Less(t, per, int64(1<<20))
	body := bytes.Repeat([]byte("0123456789"), 100_000)
	var out bytes.Buffer
	require.NoError(t, writeFrame(bufio.NewWriter(&out), frame{number: 7, kind: frameStatusIs, body: body}))
	f, err := readFrame(bufio.NewReader(&out))
	require.NoError(t, err)
	require.Equal(t, frame{number: 7, kind: frameStatusIs, body: body}, f)
}

func FuzzReadFrame(f *testing.F) {
	var b bytes.Buffer
	require.NoError(f, writeFrame(bufio.NewWriter(&b), frame{number: 1, kind: frameProposal, body: []byte("body")}))
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		in := bufio.NewReader(bytes.NewReader(b))
		for {
			fr, err := readFrame(in)
			if err != nil {
				return
			}
			var out bytes.Buffer
			require.NoError(t, writeFrame(bufio.NewWriter(&out), fr))
			again, err := readFrame(bufio.NewReader(&out))
			require.NoError(t, err)
			require.Equal(t, fr, again)
		}
	})
}
