package bootstraptoken

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var hash = strings.Repeat("0a", 32)

func TestTokens(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		token, err := New()
		require.NoError(t, err)
		again, err := Parse(token.Bearer())
		require.NoError(t, err)
		require.Equal(t, token, again)
		join, err := ParseJoin(Join{hash, token}.Text())
		require.NoError(t, err)
		require.Equal(t, Join{hash, token}, join)
		require.False(t, seen[token.Secret])
		seen[token.Secret] = true
		for _, shown := range []string{fmt.Sprint(token), fmt.Sprint(join), fmt.Sprintf("%v", &join)} {
			require.NotContains(t, shown, token.Secret)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	const good = "abcdef.0123456789abcdef"
	for _, text := range []string{"", "abcdef", "abcdef.", "ABCDEF.0123456789abcdef", good + "\n", " " + good, good + "0", "a.b.c"} {
		_, err := Parse(text)
		require.ErrorIs(t, err, ErrFormat, text)
		require.False(t, Is(text))
	}
	_, err := ParseJoin(good)
	require.ErrorIs(t, err, ErrNoHash)
	for _, text := range []string{"", "K10", "K10::" + good, "K10" + hash + good, "K10" + hash[1:] + "::" + good, "K11" + hash + "::" + good,
		"K10" + hash + "::" + good[1:], hash + "::" + good} {
		_, err := ParseJoin(text)
		require.ErrorIs(t, err, ErrFormat, text)
		require.NotContains(t, err.Error(), "0123456789abcdef")
	}
}

func TestSecrets(t *testing.T) {
	token, err := New()
	require.NoError(t, err)
	end := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	spec := Spec{Description: "rack 7", Expires: end, Authentication: true, Groups: []string{ServerGroup}}
	secret := ToSecret(token, spec)
	secret.Data = map[string][]byte{} // as the API server does
	for key, value := range secret.StringData {
		secret.Data[key] = []byte(value)
	}
	again, read, err := FromSecret(secret)
	require.NoError(t, err)
	require.Equal(t, token, again)
	require.Equal(t, spec, read)
	require.False(t, read.Over(end.Add(-time.Second)))
	require.True(t, read.Over(end))
	require.False(t, Spec{}.Over(end))
	for key, value := range map[string]string{"expiration": "soon", "auth-extra-groups": "system:masters", "token-id": "ghijkl", "token-secret": "short"} {
		broken := secret.DeepCopy()
		broken.Data[key] = []byte(value)
		_, _, err := FromSecret(broken)
		require.ErrorIs(t, err, ErrSecret, key)
		require.NotContains(t, err.Error(), token.Secret)
	}
	secret.Type = "Opaque"
	_, _, err = FromSecret(secret)
	require.ErrorIs(t, err, ErrSecret)
}

func FuzzParseJoin(f *testing.F) {
	f.Add("K10" + hash + "::abcdef.0123456789abcdef")
	f.Add("abcdef.0123456789abcdef")
	f.Fuzz(func(t *testing.T, text string) {
		join, err := ParseJoin(text)
		if err == nil {
			again, err := ParseJoin(join.Text())
			require.NoError(t, err)
			require.Equal(t, join, again)
		}
	})
}
