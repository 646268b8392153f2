package image

import (
	"archive/tar"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func read(t *testing.T, path string) string {
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

func stat(t *testing.T, path string) *syscall.Stat_t {
	st, err := os.Lstat(path)
	require.NoError(t, err)
	return st.Sys().(*syscall.Stat_t)
}

func TestUnpackAttributes(t *testing.T) {
	layer := layerTar(t,
		file{name: "bin/", uid: 3, gid: 4, mode: 0o1777},
		file{name: "bin/su", body: "x", mode: 0o4755, uid: 5, gid: 6, xattr: map[string]string{
			"security.capability":    "\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
			"trusted.overlay.opaque": "y",
		}},
		file{name: "bin/hard", kind: tar.TypeLink, link: "bin/su"},
		file{name: "bin/soft", kind: tar.TypeSymlink, link: "/bin/su", uid: 7},
		file{name: "pipe", kind: tar.TypeFifo, mode: 0o622},
	)
	rootfses(t, func(t *testing.T, root string) {
		dir := stat(t, root+"/bin")
		require.EqualValues(t, 3, dir.Uid)
		require.EqualValues(t, 0o1777, dir.Mode&0o7777)
		su := stat(t, root+"/bin/su")
		require.EqualValues(t, 0o4755, su.Mode&0o7777)
		require.EqualValues(t, 6, su.Gid)
		require.Equal(t, su.Ino, stat(t, root+"/bin/hard").Ino)
		require.EqualValues(t, 7, stat(t, root+"/bin/soft").Uid)
		target, err := os.Readlink(root + "/bin/soft")
		require.NoError(t, err)
		require.Equal(t, "/bin/su", target)
		require.EqualValues(t, syscall.S_IFIFO|0o622, stat(t, root+"/pipe").Mode)
		var buf [64]byte
		n, err := unix.Getxattr(root+"/bin/su", "security.capability", buf[:])
		require.NoError(t, err)
		require.Equal(t, 20, n)
	}, layer)
}

func TestWhiteouts(t *testing.T) {
	rootfses(t, func(t *testing.T, root string) {
		require.NoFileExists(t, root+"/gone")
		require.NoDirExists(t, root+"/tree")
		require.NoFileExists(t, root+"/opaque/old")
		require.Equal(t, "new", read(t, root+"/opaque/new"))
		require.NoFileExists(t, root+"/again/old", "deleted and made anew")
		require.Equal(t, "x", read(t, root+"/again/new"))
		require.Equal(t, "kept", read(t, root+"/kept"))
	}, layerTar(t,
		file{name: "gone", body: "x"}, file{name: "kept", body: "kept"},
		file{name: "tree/", mode: 0o755}, file{name: "tree/leaf", body: "x"},
		file{name: "opaque/"}, file{name: "opaque/old", body: "x"},
		file{name: "again/"}, file{name: "again/old", body: "x"},
	), layerTar(t,
		file{name: ".wh.gone"}, file{name: ".wh.tree"},
		file{name: "opaque/"}, file{name: "opaque/.wh..wh..opq"}, file{name: "opaque/new", body: "new"},
		file{name: ".wh.again"}, file{name: "again/"}, file{name: "again/new", body: "x"},
	))
}

// A tar may leave parents out, and may write through a symbolic link of a lower layer.
func TestParentsComeFromBelow(t *testing.T) {
	rootfses(t, func(t *testing.T, root string) {
		tmp := stat(t, root+"/tmp")
		require.EqualValues(t, 0o1777, tmp.Mode&0o7777)
		require.EqualValues(t, 9, tmp.Uid)
		require.Equal(t, "a", read(t, root+"/tmp/a"))
		require.Equal(t, "b", read(t, root+"/usr/lib/b"))
		target, err := os.Readlink(root + "/lib")
		require.NoError(t, err)
		require.Equal(t, "usr/lib", target)
		require.Equal(t, "old", read(t, root+"/usr/lib/old"))
		require.Equal(t, "deep", read(t, root+"/new/deep/file"))
		require.Equal(t, "in", read(t, root+"/etc/in"), "a link that climbs out of the root stays in it")
	}, layerTar(t,
		file{name: "tmp/", mode: 0o1777, uid: 9}, file{name: "usr/lib/old", body: "old"}, file{name: "etc/"},
		file{name: "lib", kind: tar.TypeSymlink, link: "usr/lib"},
		file{name: "up", kind: tar.TypeSymlink, link: "../../../../etc"},
	), layerTar(t,
		file{name: "tmp/a", body: "a"}, file{name: "lib/b", body: "b"}, file{name: "new/deep/file", body: "deep"},
		file{name: "up/in", body: "in"},
	))
}

func TestUnsafeLayers(t *testing.T) {
	s := openStore(t, Config{Limits: Limits{Bytes: 1000, Entries: 20}})
	outside := filepath.Join(t.TempDir(), "outside")
	many := make([]file, 30)
	for i := range many {
		many[i] = file{name: "same", body: "x"}
	}
	for what, c := range map[string]struct {
		layer []byte
		err   error
	}{
		"dot dot":           {layerTar(t, file{name: "../x", body: "x"}), ErrUnsafePath},
		"dot dot inside":    {layerTar(t, file{name: "a/../../x", body: "x"}), ErrUnsafePath},
		"hard link out":     {layerTar(t, file{name: "x", kind: tar.TypeLink, link: "../../../etc/passwd"}), ErrUnsafePath},
		"hard link to none": {layerTar(t, file{name: "x", kind: tar.TypeLink, link: "/etc/passwd"}), fs.ErrNotExist},
		"link loop":         {layerTar(t, file{name: "l", kind: tar.TypeSymlink, link: "l"}, file{name: "l/x", body: "x"}), ErrUnsafePath},
		"file as directory": {layerTar(t, file{name: "f", body: "x"}, file{name: "f/x", body: "x"}), ErrBadArchive},
		"too many bytes":    {layerTar(t, file{name: "x", body: string(make([]byte, 1001))}), ErrTooLarge},
		"too many entries":  {layerTar(t, many...), ErrTooLarge},
		"no tar":            {[]byte("this is not a tar archive, although it is longer than nothing at all"), ErrBadArchive},
	} {
		_, err := unpackLayers(t, s, c.layer)
		require.ErrorIs(t, err, c.err, what)
	}
	// An absolute link is followed inside the layer only.
	_, err := unpackLayers(t, s, layerTar(t,
		file{name: "esc", kind: tar.TypeSymlink, link: filepath.Dir(outside)}, file{name: "esc/outside", body: "x"}))
	require.NoError(t, err)
	require.NoFileExists(t, outside)
	entries, err := filepath.Glob(filepath.Join(s.layers.dir, "tmp-*"))
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestHalfALayerIsThrownAway(t *testing.T) {
	s := openStore(t, Config{})
	layer := layerTar(t, file{name: "x", body: "x"})
	wrong := "sha256:" + "00000000000000000000000000000000000000000000000000000000000000ff"
	_, err := s.layers.unpack(context.Background(), nil, wrong, opener(layer))
	require.ErrorIs(t, err, ErrBadArchive, "the digest is checked")

	// A crash in the middle, and one after the directory's rename but before layer.json (which
	// publish does not allow, but a power cut on a careless disk might).
	require.NoError(t, os.MkdirAll(filepath.Join(s.layers.dir, "tmp-1", "fs"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(s.layers.dir, "0123456789abcdef0123", "fs"), 0o755))
	s, err = Open(s.cfg)
	require.NoError(t, err)
	entries, err := os.ReadDir(s.layers.dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestManyLayers(t *testing.T) {
	var tars [][]byte
	for i := range 120 { // 127 is what other tools allow
		tars = append(tars, layerTar(t, file{name: string(rune('a'+i%26)) + "/f", body: string(rune('a' + i%26))}))
	}
	rootfses(t, func(t *testing.T, root string) {
		require.Equal(t, "p", read(t, root+"/p/f"))
	}, tars...)
}
