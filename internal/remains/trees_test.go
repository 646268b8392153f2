package remains

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestUnmountBelowALink: a directory is known to the kernel by its real name, and what is mounted below it is not emptied with
// it, whatever name it was given by.
func TestUnmountBelowALink(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to mount something")
	}
	dir := t.TempDir()
	mounted, link := filepath.Join(dir, "real", "data", "volume"), filepath.Join(dir, "link")
	require.NoError(t, os.MkdirAll(mounted, 0o755))
	require.NoError(t, os.Symlink(filepath.Join(dir, "real"), link))
	err := syscall.Mount("tmpfs", mounted, "tmpfs", 0, "")
	if errors.Is(err, syscall.EPERM) {
		t.Skip("mounting is not permitted here")
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Unmount(mounted, syscall.MNT_DETACH) })
	require.NoError(t, os.WriteFile(filepath.Join(mounted, "kept"), nil, 0o644))

	require.NoError(t, Unmount(filepath.Join(link, "data")))
	require.NoFileExists(t, filepath.Join(mounted, "kept"))
	require.NoError(t, Unmount(filepath.Join(dir, "none")))
}
