package etcdapi

import (
	"bytes"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"kontiki/mvcc"
)

// firstChunk is how many keys the first part of a streamed range has; the parts after it grow or
// shrink towards Config.MaxRequestBytes.
const firstChunk = 10

// RangeStream implements pb.KVServer: a range in parts, all as of one revision. The last part alone has
// a header, the count and whether there is more than the limit.
func (k *kvServer) RangeStream(r *pb.RangeRequest, stream pb.KV_RangeStreamServer) error {
	if err := checkRange(r); err != nil {
		return err
	}
	req := rangeRequest(r)
	switch {
	case r.SortOrder != pb.RangeRequest_NONE && (req.SortBy != mvcc.SortByKey || req.Descending):
		return status.Error(codes.Unimplemented, "RangeStream does not support custom sort orders")
	case r.MinModRevision != 0 || r.MaxModRevision != 0 || r.MinCreateRevision != 0 || r.MaxCreateRevision != 0:
		return status.Error(codes.Unimplemented, "RangeStream does not support revision filters")
	}
	req.SortBy = mvcc.SortByKey
	if !r.Serializable {
		if err := k.member.CatchUp(stream.Context()); err != nil {
			return toStatus(err)
		}
	}
	return toStatus(k.streamRange(req, stream))
}

func (k *kvServer) streamRange(req mvcc.RangeRequest, stream pb.KV_RangeStreamServer) error {
	var revision, count, sent int64
	limit, chunk := req.Limit, int64(firstChunk)
	for first := true; ; first = false {
		req.Limit = chunk
		if left := limit - sent; limit > 0 && left < chunk {
			req.Limit = left
		}
		res, err := k.member.LocalRange(req)
		if err != nil {
			return err
		}
		if first {
			revision, count = res.Revision, res.Count
			if req.Revision <= 0 {
				req.Revision = revision
			}
		}
		sent += int64(len(res.KVs))
		part := &pb.RangeResponse{Kvs: keyValues(res.KVs)}
		last := !res.More || sent == limit
		if last {
			part.Header, part.More, part.Count = k.header.at(revision), res.More, count
		}
		if err := stream.Send(&pb.RangeStreamResponse{RangeResponse: part}); err != nil || last {
			return err
		}
		req.Key = append(bytes.Clone(res.KVs[len(res.KVs)-1].Key), 0)
		chunk = nextChunk(chunk, proto.Size(part), k.config.MaxRequestBytes)
	}
}

func nextChunk(chunk int64, size, target int) int64 {
	switch {
	case size < target/2:
		return 2 * chunk
	case size > 2*target:
		return max(1, chunk/2)
	}
	return chunk
}
