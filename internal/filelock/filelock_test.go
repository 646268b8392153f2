package filelock

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestHeldAndReleased(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Lock(path)
	require.NoError(t, err)
	_, err = Lock(path)
	require.ErrorIs(t, err, ErrHeld)
	require.NoError(t, first.Close())
	second, err := Lock(path)
	require.NoError(t, err)
	require.NoError(t, second.Close())
}

// TestSharedForAMoment: the lock outlives its holder while a copy of the descriptor is open, as in a child
// between fork and exec. Lock waits for that.
func TestSharedForAMoment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Lock(path)
	require.NoError(t, err)
	copied, err := unix.Dup(int(first.Fd()))
	require.NoError(t, err)
	require.NoError(t, first.Close())
	locked := make(chan error)
	go func() {
		f, err := Lock(path)
		if err == nil {
			err = f.Close()
		}
		locked <- err
	}()
	require.NoError(t, os.NewFile(uintptr(copied), path).Close())
	require.NoError(t, <-locked)
}
