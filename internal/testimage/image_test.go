package testimage

import (
	"archive/tar"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"
)

func TestReproducibleAndReadable(t *testing.T) {
	program := []byte("\x7fELF program")
	a, b := filepath.Join(t.TempDir(), "a.tar"), filepath.Join(t.TempDir(), "b.tar")
	require.NoError(t, WriteHello(a, program))
	require.NoError(t, WriteHello(b, program))
	bytesA, err := os.ReadFile(a)
	require.NoError(t, err)
	bytesB, err := os.ReadFile(b)
	require.NoError(t, err)
	require.Equal(t, bytesA, bytesB)

	tag, err := name.NewTag(HelloName)
	require.NoError(t, err)
	image, err := tarball.ImageFromPath(a, &tag)
	require.NoError(t, err)
	config, err := image.ConfigFile()
	require.NoError(t, err)
	require.Equal(t, []string{"/hello"}, config.Config.Entrypoint)
	require.Len(t, config.RootFS.DiffIDs, 1)
}

// TestTree is a tree with a directory, a program and a link, under two names.
func TestTree(t *testing.T) {
	root, archive := t.TempDir(), filepath.Join(t.TempDir(), "tree.tar")
	require.NoError(t, os.Mkdir(filepath.Join(root, "bin"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "bin", "program"), []byte("\x7fELF"), 0o755))
	require.NoError(t, os.Symlink("bin/program", filepath.Join(root, "link")))
	tree := Tree{Root: root, Names: []string{"example.org/a:1", "example.org/b:2"}, Entrypoint: []string{"/link"}, Cmd: []string{"wait"}}
	require.NoError(t, WriteTree(archive, tree))

	tag, err := name.NewTag("example.org/b:2")
	require.NoError(t, err)
	image, err := tarball.ImageFromPath(archive, &tag)
	require.NoError(t, err)
	config, err := image.ConfigFile()
	require.NoError(t, err)
	require.Equal(t, []string{"/link"}, config.Config.Entrypoint)
	require.Equal(t, []string{"wait"}, config.Config.Cmd)
	layers, err := image.Layers()
	require.NoError(t, err)
	contents, err := layers[0].Uncompressed()
	require.NoError(t, err)
	defer contents.Close()
	found := map[string]string{}
	for entries := tar.NewReader(contents); ; {
		header, err := entries.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		found[header.Name] = header.FileInfo().Mode().String() + header.Linkname
	}
	require.Equal(t, map[string]string{"bin/": "drwxr-xr-x", "bin/program": "-rwxr-xr-x", "link": "Lrwxrwxrwxbin/program"}, found)

	require.ErrorContains(t, WriteTree(archive, Tree{Root: root}), "needs a name")
	require.Error(t, WriteTree(archive, Tree{Root: filepath.Join(root, "missing"), Names: []string{"a:1"}}))
}
