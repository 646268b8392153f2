package dynamic

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSetBetweenReadingAndUse is a Set that comes while a first request still reads: what was read before it is older.
func TestSetBetweenReadingAndUse(t *testing.T) {
	var u *InUse[string, string]
	u = NewInUse(func(context.Context) (string, error) {
		u.Set("newer")
		return "older", nil
	}, func(c string) *string { return &c })
	got, err := u.Get(t.Context())
	require.NoError(t, err)
	require.Equal(t, "newer", *got)
}

func TestReadingFails(t *testing.T) {
	reads := 0
	u := NewInUse(func(context.Context) (string, error) {
		if reads++; reads == 1 {
			return "", errors.New("away")
		}
		return "read", nil
	}, func(c string) *string { return &c })
	_, err := u.Get(t.Context())
	require.EqualError(t, err, "away")
	for range 2 {
		got, err := u.Get(t.Context())
		require.NoError(t, err)
		require.Equal(t, "read", *got)
	}
	require.Equal(t, 2, reads, "what is in use is not read again")
}
