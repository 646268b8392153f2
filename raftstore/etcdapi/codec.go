package etcdapi

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that this one builds upon
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// codec is gRPC's codec for protobuf, except that the keys of a long answer to a range are written by
// appendKeyValue: without reflection, and into buffers of one size, so that no answer needs one large piece
// of memory that was cleared for it.
//
//	┌── buffer ──────────────┬── buffer of chunkBytes ──┬── … ──┐
//	│ header, more, count    │ kvs  kvs  kvs  kvs       │ kvs … │     field 2, as often as there are keys
//	└────────────────────────┴──────────────────────────┴───────┘
//
// The order of fields in a message means nothing in protobuf.
type codec struct{ encoding.CodecV2 }

const (
	longRange  = 16       // keys from which on it is worth it
	chunkBytes = 32 << 10 // one of the sizes that gRPC's pool keeps
)

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if r, ok := v.(*pb.RangeResponse); ok && len(r.Kvs) >= longRange {
		return marshalRange(r)
	}
	return c.CodecV2.Marshal(v)
}

func marshalRange(r *pb.RangeResponse) (mem.BufferSlice, error) {
	head, err := proto.Marshal(&pb.RangeResponse{Header: r.Header, More: r.More, Count: r.Count})
	if err != nil {
		return nil, err
	}
	pool := mem.DefaultBufferPool()
	out := mem.BufferSlice{mem.SliceBuffer(head)}
	var chunk *[]byte
	for _, kv := range r.Kvs {
		n := keyValueSize(kv)
		need := protowire.SizeTag(2) + protowire.SizeBytes(n)
		if chunk != nil && cap(*chunk)-len(*chunk) < need {
			out = append(out, mem.NewBuffer(chunk, pool))
			chunk = nil
		}
		if chunk == nil {
			chunk = pool.Get(max(chunkBytes, need))
			*chunk = (*chunk)[:0]
		}
		b := protowire.AppendVarint(protowire.AppendTag(*chunk, 2, protowire.BytesType), uint64(n))
		*chunk = appendKeyValue(b, kv)
	}
	return append(out, mem.NewBuffer(chunk, pool)), nil
}

// The fields of mvccpb.KeyValue: 1 and 5 are bytes, the others numbers. Empty ones are left out.
func keyValueSize(kv *mvccpb.KeyValue) int {
	return bytesSize(kv.Key) + numberSize(kv.CreateRevision) + numberSize(kv.ModRevision) +
		numberSize(kv.Version) + bytesSize(kv.Value) + numberSize(kv.Lease)
}

func appendKeyValue(b []byte, kv *mvccpb.KeyValue) []byte {
	b = appendBytes(b, 1, kv.Key)
	b = appendNumber(b, 2, kv.CreateRevision)
	b = appendNumber(b, 3, kv.ModRevision)
	b = appendNumber(b, 4, kv.Version)
	b = appendBytes(b, 5, kv.Value)
	return appendNumber(b, 6, kv.Lease)
}

// tagSize is that of a field whose number is below 16.
const tagSize = 1

func bytesSize(v []byte) int {
	if len(v) == 0 {
		return 0
	}
	return tagSize + protowire.SizeBytes(len(v))
}

func numberSize(v int64) int {
	if v == 0 {
		return 0
	}
	return tagSize + protowire.SizeVarint(uint64(v))
}

func appendBytes(b []byte, field protowire.Number, v []byte) []byte {
	if len(v) == 0 {
		return b
	}
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func appendNumber(b []byte, field protowire.Number, v int64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(v))
}
