package testimage

import (
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
