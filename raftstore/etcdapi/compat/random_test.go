package compat

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

var (
	randomSeed  = flag.Uint64("compat.seed", 1, "seed of the first random conversation")
	randomSeeds = flag.Int("compat.seeds", 3, "how many random conversations with etcd are had")
	randomSteps = flag.Int("compat.steps", 400, "how many calls are in a random conversation")
)

// TestRandomCalls has conversations of random calls over few keys with etcd and with a member, and wants to hear the same.
func TestRandomCalls(t *testing.T) {
	for i := range *randomSeeds {
		seed := *randomSeed + uint64(i)
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			var heard [2][]string
			for i, server := range servers {
				t.Run(server.name, func(t *testing.T) {
					r := &randomCaller{session: newSession(t, server.start(t)), Rand: rand.New(rand.NewPCG(seed, 0)), head: 1}
					for range *randomSteps {
						r.call()
					}
					r.watchAll()
					heard[i] = heardOf(r.transcript.String())
				})
			}
			require.Greater(t, len(heard[0]), *randomSteps)
			for i, line := range heard[0] {
				require.Equal(t, line, heard[1][i], "line %d; expected is etcd's; before it:\n%s", i, strings.Join(heard[0][max(0, i-5):i], ""))
			}
			require.Len(t, heard[1], len(heard[0]))
		})
	}
}

var leaseField = regexp.MustCompile(`,"lease":"\d+"`)

// heardOf is a transcript's lines. Where only keys were asked for etcd 3.7 leaves the lease out, too, sometimes: it depends on the order.
func heardOf(transcript string) (lines []string) {
	for line := range strings.Lines(transcript) {
		if strings.Contains(line, `"keysOnly":true`) {
			line = leaseField.ReplaceAllString(line, "")
		}
		lines = append(lines, line)
	}
	return lines
}

// randomCaller makes the same calls for the same seed, as long as the store answers with the same revisions.
type randomCaller struct {
	*session
	*rand.Rand
	head      int64 // as the last answer said
	compacted int64
}

// call makes one call and notes the answer.
func (r *randomCaller) call() {
	switch n := r.IntN(100); {
	case n < 25:
		r.txn(then(r.putOp()))
		r.put(r.key(), r.value(), r.putFlags)
	case n < 45:
		key, end := r.keys()
		r.get(key, end, r.rangeFlags)
	case n < 55:
		key, end := r.keys()
		r.del(key, end, func(q *pb.DeleteRangeRequest) { q.PrevKv = r.one(2) })
	case n < 85:
		r.txn(r.transaction(2))
	case n < 90:
		r.grant(1+r.Int64N(3), 1000) // 0 is for the server to choose
	case n < 94:
		r.revoke(r.Int64N(4))
	case n < 97:
		r.timeToLive(r.Int64N(4))
	default:
		r.compactSome()
	}
	r.look()
}

// look learns which revision is the newest.
func (r *randomCaller) look() {
	answer, err := r.kv.Range(r.ctx, &pb.RangeRequest{Key: []byte("none")})
	require.NoError(r, err)
	r.head = answer.Header.Revision
}

func (r *randomCaller) one(in int) bool { return r.IntN(in) == 0 }

func (r *randomCaller) key() string { return string(rune('a' + r.IntN(5))) }

func (r *randomCaller) value() string { return fmt.Sprint(r.IntN(3)) }

// keys is a key, or a range of them.
func (r *randomCaller) keys() (key, end string) {
	switch r.IntN(6) {
	case 0:
		return r.key(), "\x00"
	case 1, 2:
		return r.key(), r.key() // empty as often as not
	case 3:
		return "\x00", "\x00"
	}
	return r.key(), ""
}

// revision is one that there may have been.
func (r *randomCaller) revision() int64 { return r.head + 2 - r.Int64N(min(r.head, 40)+3) }

func (r *randomCaller) putFlags(q *pb.PutRequest) {
	q.PrevKv = r.one(2)
	if q.IgnoreLease = r.one(8); !q.IgnoreLease && r.one(4) {
		q.Lease = r.Int64N(4)
	}
	if q.IgnoreValue = r.one(8); q.IgnoreValue && !r.one(5) {
		q.Value = nil
	}
}

func (r *randomCaller) rangeFlags(q *pb.RangeRequest) {
	q.KeysOnly, q.CountOnly, q.Serializable = r.one(4), r.one(6), r.one(3)
	if r.one(2) {
		q.Limit = r.Int64N(4)
	}
	q.SortOrder, q.SortTarget = pb.RangeRequest_SortOrder(r.IntN(3)), pb.RangeRequest_SortTarget(r.IntN(5))
	if q.SortOrder == pb.RangeRequest_NONE && q.Limit > 0 {
		q.SortTarget = pb.RangeRequest_KEY // etcd cuts before it sorts, else
	}
	for _, bound := range []*int64{&q.Revision, &q.MinModRevision, &q.MaxModRevision, &q.MinCreateRevision, &q.MaxCreateRevision} {
		if r.one(5) {
			*bound = r.revision()
		}
	}
}

func (r *randomCaller) putOp() *pb.RequestOp {
	q := &pb.PutRequest{Key: []byte(r.key()), Value: []byte(r.value())}
	r.putFlags(q)
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: q}}
}

func (r *randomCaller) op(depth int) *pb.RequestOp {
	switch n := r.IntN(8); {
	case n < 3:
		return r.putOp()
	case n < 5:
		key, end := r.keys()
		if end == "\x00" {
			end = "z" // etcd does not see that a put is in a range without an end (its issue 22445)
		}
		return deleteOp(key, end)
	case n < 7 || depth == 0:
		key, end := r.keys()
		q := &pb.RangeRequest{Key: []byte(key), RangeEnd: []byte(end)}
		r.rangeFlags(q)
		return rangeOp(q)
	}
	return txnOp(r.transaction(depth - 1))
}

func (r *randomCaller) transaction(depth int) *pb.TxnRequest {
	t := &pb.TxnRequest{}
	for range r.IntN(3) {
		t.Compare = append(t.Compare, r.compare())
	}
	t.Success, t.Failure = r.ops(r.IntN(4), depth), r.ops(r.IntN(3), depth)
	return t
}

// ops are operations with at most one transaction among them: etcd does not see that a second one deletes what the first puts.
func (r *randomCaller) ops(n, depth int) (ops []*pb.RequestOp) {
	for range n {
		o := r.op(depth)
		if o.GetRequestTxn() != nil {
			depth = 0
		}
		ops = append(ops, o)
	}
	return ops
}

func (r *randomCaller) compare() *pb.Compare {
	key, end := r.keys()
	c := &pb.Compare{Key: []byte(key), RangeEnd: []byte(end), Result: pb.Compare_CompareResult(r.IntN(4)), Target: pb.Compare_CompareTarget(r.IntN(5))}
	switch c.Target {
	case pb.Compare_VERSION:
		c.TargetUnion = &pb.Compare_Version{Version: r.Int64N(4)}
	case pb.Compare_CREATE:
		c.TargetUnion = &pb.Compare_CreateRevision{CreateRevision: r.revision()}
	case pb.Compare_MOD:
		c.TargetUnion = &pb.Compare_ModRevision{ModRevision: r.revision()}
	case pb.Compare_VALUE:
		c.TargetUnion = &pb.Compare_Value{Value: []byte(r.value())}
	case pb.Compare_LEASE:
		c.TargetUnion = &pb.Compare_Lease{Lease: r.Int64N(4)}
	}
	return c
}

func (r *randomCaller) compactSome() {
	rev := max(r.revision(), 1) // once, etcd compacts 0
	r.compact(rev)
	if rev <= r.head {
		r.compacted = max(r.compacted, rev)
	}
}

// watchAll notes what watches tell that begin at several revisions.
func (r *randomCaller) watchAll() {
	r.put("last", "")
	r.look()
	for rev := max(r.compacted, 1); rev <= r.head; rev += 1 + r.Int64N(30) {
		w := r.watching()
		w.create("\x00", "\x00", from(rev), prevKV)
		for seen := false; !seen; {
			answer := w.next()
			require.NotEmpty(r, answer.Events)
			for _, e := range answer.Events {
				r.note("from %d: %s", rev, text(e))
				seen = string(e.Kv.Key) == "last"
			}
		}
	}
}
