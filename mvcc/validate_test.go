package mvcc

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestValidateLone: the short way of Validate says of lone operations what the long one says.
func TestValidateLone(t *testing.T) {
	k := []byte("k")
	ops := []Op{
		{}, {Put: &PutRequest{Key: k}}, {Put: &PutRequest{}}, {Put: &PutRequest{Key: k, Value: k, IgnoreValue: true}},
		{Put: &PutRequest{Key: k, Lease: 1, IgnoreLease: true}}, {Delete: &DeleteRequest{Key: k}}, {Delete: &DeleteRequest{}},
		{Range: &RangeRequest{Key: k}}, {Range: &RangeRequest{}}, {Range: &RangeRequest{Key: k, SortBy: SortByValue + 1}},
		{Range: &RangeRequest{Key: k}, Put: &PutRequest{Key: k}},
	}
	compares := [][]Compare{nil, {{Key: k}}, {{}}, {{Key: k, Target: CompareValue + 1}}, {{Key: k, Result: NotEqual + 1}}, make([]Compare, MaxTxnOps+1)}
	lists := [][]Op{nil}
	for _, op := range ops {
		lists = append(lists, []Op{op})
	}
	refused := 0
	for _, c := range compares {
		for _, then := range lists {
			for _, other := range lists {
				req := TxnRequest{Compare: c, Then: then, Else: other}
				_, want := req.changes(1)
				require.Equal(t, want, req.Validate(), "%+v", req)
				if want != nil {
					refused++
				}
			}
		}
	}
	require.Less(t, refused, len(compares)*len(lists)*len(lists))
	require.Positive(t, refused)
}
