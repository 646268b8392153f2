package raftstore

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// The decoders of what other members send and of what is in notes. Those of entries, results and frames are in entry_test.go.

func FuzzDecodeChange(f *testing.F) {
	encode := func(c change) []byte {
		var e encoder
		e.byte(c.kind)
		for _, text := range []string{c.id, c.address, c.name} {
			e.string(text)
		}
		return e.b
	}
	f.Add(encode(change{kind: changeAdd, id: "a", address: "a:1", name: "n"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decodeChange(b)
		if err != nil {
			require.ErrorIs(t, err, ErrFormat)
			return
		}
		again, err := decodeChange(encode(c))
		require.NoError(t, err)
		require.Equal(t, c, again)
	})
}

func FuzzDecodeMemberNote(f *testing.F) {
	f.Add(encodeMemberNote("a", []string{"https://a:1", ""}))
	f.Fuzz(func(t *testing.T, b []byte) {
		d := decoder{b: b}
		name, urls := d.string(), d.strings()
		if d.end() != nil {
			return
		}
		d = decoder{b: encodeMemberNote(name, urls)}
		require.Equal(t, name, d.string())
		require.Equal(t, urls, d.strings())
		require.NoError(t, d.end())
	})
}

func FuzzDecodeError(f *testing.F) {
	f.Add(encodeError(ErrNoSpace))
	f.Add([]byte{200, 1, 'x'})
	f.Fuzz(func(t *testing.T, b []byte) {
		err := decodeError(b)
		require.Error(t, err)
		for code, sentinel := range errorCodes {
			known := len(b) > 0 && int(b[0]) == code+1
			require.Equal(t, known || len(b) == 0 && sentinel == ErrFormat || len(b) > 0 && int(b[0]) > len(errorCodes) && sentinel == ErrFormat,
				errors.Is(err, sentinel))
		}
	})
}

// FuzzUnsealed: no bytes but those that were sealed pass as a snapshot.
func FuzzUnsealed(f *testing.F) {
	sealed := func(t testing.TB, content []byte) []byte {
		var b bytes.Buffer
		require.NoError(t, writeSealed(&b, func(w io.Writer) error { _, err := w.Write(content); return err }))
		return b.Bytes()
	}
	f.Add(sealed(f, nil))
	f.Add(sealed(f, []byte("content")))
	f.Fuzz(func(t *testing.T, b []byte) {
		content, err := io.ReadAll(newUnsealed(bytes.NewReader(b)))
		if err != nil {
			require.ErrorIs(t, err, ErrSnapshotDamaged)
			return
		}
		require.Equal(t, b, sealed(t, content))
	})
}
