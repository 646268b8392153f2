package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDataDirIsHeldByOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	first, err := openDataDir(path)
	require.NoError(t, err)
	_, err = openDataDir(path)
	require.EqualError(t, err, fmt.Sprintf("data directory %s is in use by another kontiki (process %d)", path, os.Getpid()))
	require.NoError(t, first.close())
	second, err := openDataDir(path)
	require.NoError(t, err)
	require.NoError(t, second.close())
}
