package mvcc

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkRangeFromFile reads 500 of 10,000 keys whose values are in the file only.
func BenchmarkRangeFromFile(b *testing.B) {
	path := filepath.Join(b.TempDir(), "db")
	s, err := Open(path, Options{})
	require.NoError(b, err)
	for i := range 10000 {
		put := Op{Put: &PutRequest{Key: fmt.Appendf(nil, "key%06d", i), Value: make([]byte, 256)}}
		require.NoError(b, s.Apply(uint64(i+1), Command{Txn: &TxnRequest{Then: []Op{put}}})[0].Err)
	}
	require.NoError(b, s.Close())
	s, err = Open(path, Options{})
	require.NoError(b, err)
	defer s.Close()
	for b.Loop() {
		res, err := s.Range(RangeRequest{Key: []byte("key002000"), End: []byte("key002500")})
		require.NoError(b, err)
		require.Len(b, res.KVs, 500)
	}
}
