package image

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Deletions in a layer: the OCI image spec (layer.md, "Whiteouts") writes them as files
// named .wh.NAME and .wh..wh..opq; overlayfs as character devices 0/0 and a directory
// attribute. Layers are unpacked in overlayfs' form; copies of root file systems read it too.
const (
	whiteoutPrefix = ".wh."
	opaqueMarker   = ".wh..wh..opq"
)

// opaqueAttrs are the attribute that overlayfs reads, and one for machines where the
// trusted namespace may not be written (there root file systems are copies).
var opaqueAttrs = []string{"trusted.overlay.opaque", "user.overlay.opaque"}

// whiteout applies the marker base found in dir.
func (u *unpacker) whiteout(dir, base string) error {
	if base == opaqueMarker {
		return u.makeOpaque(dir)
	}
	name := strings.TrimPrefix(base, whiteoutPrefix)
	if name == "" || name == "." || name == ".." || strings.HasPrefix(name, whiteoutPrefix) {
		return nil // aufs' own bookkeeping (.wh..wh.plnk and the like)
	}
	target := path.Join(dir, name)
	st, err := u.root.Lstat(target)
	if err == nil {
		if st.IsDir() {
			return u.makeOpaque(target) // the same tar made it anew already
		}
		return nil // a whiteout only speaks about lower layers
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := u.root.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	clear(u.parents)
	return unix.Mknodat(int(f.Fd()), name, unix.S_IFCHR, 0)
}

// makeOpaque hides what lower layers have in dir.
func (u *unpacker) makeOpaque(dir string) error {
	f, err := u.root.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	clear(u.parents)
	for _, attr := range opaqueAttrs {
		if err = unix.Fsetxattr(int(f.Fd()), attr, []byte("y"), 0); err == nil {
			return nil
		}
	}
	return err
}

// isWhiteout says whether st is overlayfs' mark for a deleted name.
func isWhiteout(st fs.FileInfo) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && sys.Mode&syscall.S_IFMT == syscall.S_IFCHR && sys.Rdev == 0
}

// isOpaque says whether dir in layer hides what is below it.
func isOpaque(layer *os.Root, dir string) bool {
	f, err := layer.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	var buf [8]byte
	for _, attr := range opaqueAttrs {
		if n, err := unix.Fgetxattr(int(f.Fd()), attr, buf[:]); err == nil && string(buf[:n]) == "y" {
			return true
		}
	}
	return false
}
