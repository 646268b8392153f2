package authwebhook

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Both kinds of answers are bounded, each by itself, and a key has one answer.
func TestCacheKeepsRefusalsApart(t *testing.T) {
	now := time.Unix(0, 0)
	c := newCache[string](func() time.Time { return now })
	mine, _ := digest("mine")
	c.put(mine, "yes", true, time.Hour)
	for i := range maxKept + 100 {
		key, _ := digest(i)
		c.put(key, "no", false, time.Minute)
	}
	require.Len(t, c.refused, maxKept)
	value, ok := c.get(mine)
	require.True(t, ok)
	require.Equal(t, "yes", value)

	c.put(mine, "no", false, time.Minute)
	value, ok = c.get(mine)
	require.True(t, ok)
	require.Equal(t, "no", value, "the last answer")
	require.Empty(t, c.granted)

	now = now.Add(time.Minute)
	_, ok = c.get(mine)
	require.False(t, ok)
	other, _ := digest("other")
	c.put(other, "no", false, time.Minute)
	require.Len(t, c.refused, 1, "those that are over make room")
}
