package controlplane

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A member whose name is damaged or gone is refused: no name, and a made-up one, would have it wait
// for ever for a leader.
func TestMemberID(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	id, err := memberID(dir)
	require.NoError(t, err)
	again, err := memberID(dir)
	require.NoError(t, err)
	require.Equal(t, id, again)

	path := filepath.Join(dir, "member-id")
	for _, text := range []string{"", "\n", id[:4], id[:4] + "\x00\x00\x00\x00\n"} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err = memberID(dir)
		require.ErrorContains(t, err, "member-id is damaged", "%q", text)
	}
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mvcc.db"), nil, 0o600))
	_, err = memberID(dir)
	require.ErrorContains(t, err, "member-id is missing")
	require.NoFileExists(t, path)
}
