package image

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"archive/tar"
)

func opener(b []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
}

// FuzzUnpack: whatever the tar says, nothing appears outside of the layer.
func FuzzUnpack(f *testing.F) {
	needRoot(f)
	f.Add(layerTar(f, file{name: "a/b", body: "x"}, file{name: "a/.wh.b"}))
	f.Add(layerTar(f, file{name: "l", kind: tar.TypeSymlink, link: "/"}, file{name: "l/x", body: "x"}))
	f.Add(layerTar(f, file{name: "l", kind: tar.TypeSymlink, link: "../.."}, file{name: "h", kind: tar.TypeLink, link: "l/x"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "guard"), []byte("guard"), 0o600); err != nil {
			t.Fatal(err)
		}
		u, err := newUnpacker(filepath.Join(dir, "fs"), nil, Limits{Bytes: 1 << 20, Entries: 1000})
		if err != nil {
			t.Fatal(err)
		}
		defer u.close()
		_ = u.apply(context.Background(), bytes.NewReader(b))
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		guard, err := os.ReadFile(filepath.Join(dir, "guard"))
		if len(entries) != 2 || err != nil || string(guard) != "guard" {
			t.Fatalf("escaped: %v %v", entries, err)
		}
	})
}
