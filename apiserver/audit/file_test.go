package audit

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// openTestFile opens a log whose clock moves an hour with every look at it.
func openTestFile(t *testing.T, config FileConfig) *file {
	t.Helper()
	config.Path = filepath.Join(t.TempDir(), "logs", "audit.log")
	f, err := openFile(config)
	require.NoError(t, err)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f.now = func() time.Time { at = at.Add(time.Hour); return at }
	return f
}

// names are the files of a log, oldest first.
func (f *file) names(t *testing.T) (names []string) {
	t.Helper()
	f.backups.Wait()
	for _, b := range f.listBackups() {
		names = append(names, filepath.Base(b.path))
	}
	return names
}

// half is an event of which two fill a megabyte.
var half = bytes.Repeat([]byte("x"), 1<<19-1)

func TestFileAddsLines(t *testing.T) {
	f := openTestFile(t, FileConfig{})
	require.NoError(t, f.write([][]byte{[]byte("one"), []byte("two")}))
	require.NoError(t, f.close())
	again, err := openFile(f.config)
	require.NoError(t, err)
	require.NoError(t, again.write([][]byte{[]byte("three")}))
	require.NoError(t, again.close())
	data, err := os.ReadFile(f.config.Path)
	require.NoError(t, err)
	require.Equal(t, "one\ntwo\nthree\n", string(data))
	info, err := os.Stat(f.config.Path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
}

func TestFileIsSetAside(t *testing.T) {
	f := openTestFile(t, FileConfig{MaxSizeMB: 1})
	for range 5 {
		require.NoError(t, f.write([][]byte{half}))
	}
	names := f.names(t)
	require.Len(t, names, 2)
	for _, name := range names {
		require.Regexp(t, `^audit-2026-01-01T\d\d-00-00\.000\.log$`, name)
		info, err := os.Stat(filepath.Join(filepath.Dir(f.config.Path), name))
		require.NoError(t, err)
		require.Equal(t, int64(1<<20), info.Size(), "full, and no line is in two files")
	}
	require.NoError(t, f.write([][]byte{bytes.Repeat(half, 3)}), "more than fits is a file of its own")
	require.NoError(t, f.close())
}

func TestFileForgets(t *testing.T) {
	t.Run("all but some", func(t *testing.T) {
		f := openTestFile(t, FileConfig{MaxSizeMB: 1, MaxBackups: 2})
		for range 9 {
			require.NoError(t, f.write([][]byte{half}))
		}
		require.Len(t, f.names(t), 2)
		require.NoError(t, f.close())
	})
	t.Run("what is old", func(t *testing.T) {
		f := openTestFile(t, FileConfig{MaxSizeMB: 1, MaxAgeDays: 1})
		dir := filepath.Dir(f.config.Path)
		for _, name := range []string{"audit-2025-12-30T00-00-00.000.log", "audit-2025-12-31T12-00-00.000.log", "other.log", "audit-x.log"} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		}
		for range 3 {
			require.NoError(t, f.write([][]byte{half}))
		}
		names := f.names(t)
		require.NotContains(t, names, "audit-2025-12-30T00-00-00.000.log")
		require.Contains(t, names, "audit-2025-12-31T12-00-00.000.log")
		require.FileExists(t, filepath.Join(dir, "other.log"))
		require.FileExists(t, filepath.Join(dir, "audit-x.log"))
		require.NoError(t, f.close())
	})
}

func TestFileCompresses(t *testing.T) {
	f := openTestFile(t, FileConfig{MaxSizeMB: 1, Compress: true, MaxBackups: 5})
	for i := range 5 {
		require.NoError(t, f.write([][]byte{fmt.Appendf(slices.Clip(half), "%d", i)}))
	}
	names := f.names(t)
	require.NotEmpty(t, names)
	var all strings.Builder
	for _, name := range names {
		require.True(t, strings.HasSuffix(name, ".log.gz"), name)
		in, err := os.Open(filepath.Join(filepath.Dir(f.config.Path), name))
		require.NoError(t, err)
		unzipped, err := gzip.NewReader(in)
		require.NoError(t, err)
		data, err := io.ReadAll(unzipped)
		require.NoError(t, err)
		all.Write(data)
		in.Close()
	}
	require.NoError(t, f.close())
	rest, err := os.ReadFile(f.config.Path)
	require.NoError(t, err)
	all.Write(rest)
	require.Equal(t, 5, strings.Count(all.String(), "\n"), "nothing is lost")
}

func TestFileThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	_, err := openFile(FileConfig{Path: dir})
	require.ErrorContains(t, err, dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), nil, 0o600))
	_, err = openFile(FileConfig{Path: filepath.Join(dir, "f", "audit.log")})
	require.ErrorContains(t, err, "audit log")

	f := openTestFile(t, FileConfig{})
	require.NoError(t, f.close())
	require.ErrorIs(t, f.write([][]byte{half}), os.ErrClosed)
}

// Somebody else may set the file aside: logging goes on, in a new one.
func TestFileThatIsGone(t *testing.T) {
	f := openTestFile(t, FileConfig{MaxSizeMB: 1})
	require.NoError(t, f.write([][]byte{half}))
	require.NoError(t, os.Remove(f.config.Path))
	for range 3 {
		require.NoError(t, f.write([][]byte{half}))
	}
	require.FileExists(t, f.config.Path)
	require.NoError(t, f.close())
}
