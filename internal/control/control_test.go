package control

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCalls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control.sock")
	require.NoError(t, os.WriteFile(path, nil, 0o600)) // left by a process that is gone
	server := &Server{
		StoreStatus: func(context.Context) (any, error) { return map[string]int{"revision": 7}, nil },
		ImportImages: func(_ context.Context, r io.Reader) ([]string, error) {
			data, err := io.ReadAll(r)
			if string(data) == "bad" {
				return nil, errors.New("bad archive")
			}
			return []string{string(data)}, err
		},
	}
	client := start(t, server, path)

	status, err := client.StoreStatus(t.Context())
	require.NoError(t, err)
	require.JSONEq(t, `{"revision":7}`, string(status))
	names, err := client.ImportImages(t.Context(), strings.NewReader("a"))
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, names)
	_, err = client.ImportImages(t.Context(), strings.NewReader("bad"))
	require.EqualError(t, err, "bad archive")

	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestAbsentParts(t *testing.T) {
	client := start(t, &Server{}, filepath.Join(t.TempDir(), "control.sock"))
	_, err := client.StoreStatus(t.Context())
	require.EqualError(t, err, "this process runs no store")
}

func TestNotRunning(t *testing.T) {
	_, err := NewClient(filepath.Join(t.TempDir(), "control.sock")).StoreStatus(t.Context())
	require.ErrorIs(t, err, ErrNotRunning)
}

// start serves until the test ends and returns a client once the server answers.
func start(t *testing.T, s *Server, path string) *Client {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, path) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
		require.NoFileExists(t, path)
	})
	client := NewClient(path)
	require.Eventually(t, func() bool {
		_, err := client.StoreStatus(t.Context())
		return !errors.Is(err, ErrNotRunning)
	}, 10*time.Second, time.Millisecond)
	return client
}
