package grpcserver

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/metadata"
	"pgregory.net/rapid"
)

// TestHeads: blocks mean what a plain decoder of HPACK says, whether or not they were known, however the table changes.
func TestHeads(t *testing.T) {
	s := New(Config{})
	defer s.Close()
	s.methods["/s/m"] = &method{}
	rapid.Check(t, func(t *rapid.T) {
		var block bytes.Buffer
		encoder := hpack.NewEncoder(&block)
		h := newHeads(s, t.Context())
		name := rapid.SampledFrom([]string{"a", "b", "c", "user-agent"})
		value := rapid.OneOf(rapid.SampledFrom([]string{"1", "2", "3"}), rapid.StringN(0, 900, 900))
		for range rapid.IntRange(1, 40).Draw(t, "blocks") {
			block.Reset()
			if rapid.IntRange(0, 9).Draw(t, "resize") == 0 {
				encoder.SetMaxDynamicTableSize(uint32(rapid.IntRange(0, tableBytes).Draw(t, "table")))
			}
			want := metadata.Pairs("content-type", "application/grpc")
			fields := []hpack.HeaderField{{Name: ":path", Value: "/s/m"}, {Name: "content-type", Value: "application/grpc"}}
			for range rapid.IntRange(0, 4).Draw(t, "fields") {
				f := hpack.HeaderField{Name: name.Draw(t, "name"), Value: value.Draw(t, "value")}
				fields = append(fields, f)
				want.Append(f.Name, f.Value)
			}
			for _, f := range fields {
				require.NoError(t, encoder.WriteField(f))
			}
			d, err := h.decode(block.Bytes())
			require.NoError(t, err)
			require.NoError(t, d.err)
			got, _ := metadata.FromIncomingContext(d.ctx)
			require.Equal(t, want, got)
		}
	})
}

// TestKnownHeads: the same headers again are not decoded again.
func TestKnownHeads(t *testing.T) {
	s := New(Config{})
	defer s.Close()
	var block bytes.Buffer
	encoder, h := hpack.NewEncoder(&block), newHeads(s, t.Context())
	var before *head
	for i := range 4 {
		block.Reset()
		for _, f := range answerHeaders {
			require.NoError(t, encoder.WriteField(f))
		}
		d, err := h.decode(block.Bytes())
		require.NoError(t, err)
		require.Equal(t, i >= 2, d == before) // the first block fills the table, the second is remembered
		before = d
	}
}

func TestHeadsAreBounded(t *testing.T) {
	s := New(Config{})
	defer s.Close()
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for range 100 {
		require.NoError(t, encoder.WriteField(hpack.HeaderField{Name: "n", Value: string(make([]byte, 1000)), Sensitive: true}))
	}
	_, err := newHeads(s, t.Context()).decode(block.Bytes())
	require.ErrorIs(t, err, errHeadTooLarge)
}

func TestParseTimeout(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1H": time.Hour, "20M": 20 * time.Minute, "3S": 3 * time.Second, "100m": 100 * time.Millisecond,
		"7u": 7 * time.Microsecond, "9n": 9, "0S": 1, "99999999H": math.MaxInt64 / time.Hour * time.Hour,
	} {
		got, err := parseTimeout(text)
		require.NoError(t, err)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"S", "1", "1x", "-1S", "+1S", "999999999S", "1 S"} {
		_, err := parseTimeout(text)
		require.Error(t, err, text)
	}
}
