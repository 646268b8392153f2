package encryption_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/apiserver/storage/encryption"
)

const (
	readyTime = 10 * time.Second
	pollTime  = 10 * time.Millisecond
)

// FuzzOpen: whatever is in the store, reading it gives what was written or an error.
func FuzzOpen(f *testing.F) {
	t := &testing.T{}
	e, err := encryption.Open(encryption.Config{Path: file(t, f.TempDir()+"/e", "{aescbc: {keys: ["+key("c", "a")+"]}}, {aesgcm: {keys: ["+key("g", "b")+"]}}, {secretbox: {keys: ["+key("s", "c")+"]}}, {identity: {}}")})
	require.NoError(f, err)
	f.Cleanup(e.Close)
	r := e.For(secrets)
	for _, start := range []string{"k8s:enc:aescbc:v1:c:", "k8s:enc:aesgcm:v1:g:", "k8s:enc:secretbox:v1:s:", "k8s:enc:", "k8s\x00", "{}"} {
		f.Add([]byte(start + "0123456789abcdef0123456789abcdef0123456789abcdef"))
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		plain, _, err := r.Open(at, stored)
		if err == nil {
			_, err = r.Seal(at, plain)
			require.NoError(t, err)
		}
	})
}
