package etcdapi

import (
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

// TestCodec: what the codec writes, protobuf reads as the same message, whatever the sizes.
func TestCodec(t *testing.T) {
	codec := newCodec()
	number := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64())
	value := rapid.OneOf(rapid.SliceOfN(rapid.Byte(), 0, 300), rapid.Custom(func(t *rapid.T) []byte {
		return make([]byte, rapid.IntRange(0, 3*chunkBytes).Draw(t, "bytes"))
	}))
	rapid.Check(t, func(t *rapid.T) {
		r := &pb.RangeResponse{
			Header: &pb.ResponseHeader{ClusterId: 1, MemberId: 2, Revision: number.Draw(t, "revision"), RaftTerm: 3},
			More:   rapid.Bool().Draw(t, "more"), Count: number.Draw(t, "count"),
		}
		for range rapid.IntRange(0, 3*longRange).Draw(t, "keys") {
			r.Kvs = append(r.Kvs, &mvccpb.KeyValue{
				Key: rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "key"), Value: value.Draw(t, "value"),
				CreateRevision: number.Draw(t, "create"), ModRevision: number.Draw(t, "mod"),
				Version: number.Draw(t, "version"), Lease: number.Draw(t, "lease"),
			})
		}
		out, err := codec.Marshal(r)
		require.NoError(t, err)
		var got pb.RangeResponse
		require.NoError(t, codec.Unmarshal(out, &got))
		require.True(t, proto.Equal(r, &got))
		require.Equal(t, proto.Size(r), out.Len())
		out.Free()
	})
}
