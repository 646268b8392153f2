package tokens_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/apiserver/tokens"
)

// Tokens of Secrets and others are not taken for each other, and both are bound to the account by its uid.
func TestLegacyTokens(t *testing.T) {
	c := &clock{time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}
	issuer := newIssuer(t, c, newKey(t))
	token, err := issuer.SignLegacy("a", "s", tokens.Object{Name: "robot", UID: "u1"})
	require.NoError(t, err)
	c.now = c.now.Add(10 * 365 * 24 * time.Hour)
	claims, err := issuer.VerifyLegacy(token)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "s", "robot", "u1", "system:serviceaccount:a:robot"},
		[]string{claims.Namespace, claims.Secret, claims.AccountName, claims.AccountUID, claims.Subject})
	_, _, err = issuer.Verify(token, nil)
	require.ErrorIs(t, err, tokens.ErrInvalid)
	bound, _, err := issuer.Sign(binding, nil, time.Hour)
	require.NoError(t, err)
	for _, bad := range []string{bound, "", "..", token + "x", token[:len(token)-4], strings.Repeat("a", 9<<10)} {
		_, err = issuer.VerifyLegacy(bad)
		require.ErrorIs(t, err, tokens.ErrInvalid)
	}
	_, err = newIssuer(t, c, newKey(t)).VerifyLegacy(token)
	require.ErrorIs(t, err, tokens.ErrInvalid)
	unnamed, err := issuer.SignLegacy("a", "", tokens.Object{Name: "robot", UID: "u1"})
	require.NoError(t, err)
	_, err = issuer.VerifyLegacy(unnamed)
	require.ErrorIs(t, err, tokens.ErrInvalid)
}
