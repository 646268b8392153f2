package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// unpacker applies one layer's tar to an empty directory. Every access goes through
// os.Root, so that no name and no symbolic link leads out of it.
type unpacker struct {
	root  *os.Root
	lower []*os.Root // the layers below, nearest first: for parents that the tar leaves out
	limit Limits

	bytes   int64 // of regular files
	entries int
	parents map[string]string // answers of parent(), forgotten when something is replaced
	dirs    []*tar.Header     // directories (Name is the resolved path), whose times are set last
}

func newUnpacker(dir string, lower []string, limit Limits) (*unpacker, error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	u := &unpacker{root: root, limit: limit, parents: map[string]string{}}
	for _, l := range lower {
		r, err := os.OpenRoot(l)
		if err != nil {
			u.close()
			return nil, err
		}
		u.lower = append(u.lower, r)
	}
	return u, nil
}

func (u *unpacker) close() {
	u.root.Close()
	for _, r := range u.lower {
		r.Close()
	}
}

func (u *unpacker) apply(ctx context.Context, r io.Reader) error {
	tr := tar.NewReader(r)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		hdr, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrBadArchive, err)
		}
		if err := u.entry(hdr, tr); err != nil {
			return fmt.Errorf("%q: %w", hdr.Name, err)
		}
	}
	for _, hdr := range slices.Backward(u.dirs) {
		if err := u.root.Chtimes(hdr.Name, hdr.ModTime, hdr.ModTime); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// count enforces the limits before anything of the entry is written.
func (u *unpacker) count(hdr *tar.Header) error {
	u.entries++
	if hdr.Typeflag == tar.TypeReg {
		u.bytes += hdr.Size
	}
	if u.entries > u.limit.Entries || u.bytes > u.limit.Bytes {
		return fmt.Errorf("%w: more than %d files or %d bytes", ErrTooLarge, u.limit.Entries, u.limit.Bytes)
	}
	return nil
}

func (u *unpacker) entry(hdr *tar.Header, r io.Reader) error {
	if hdr.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	if err := u.count(hdr); err != nil {
		return err
	}
	target, err := u.resolve(hdr.Name)
	if err != nil {
		return err
	}
	if base := path.Base(target); strings.HasPrefix(base, whiteoutPrefix) {
		return u.whiteout(path.Dir(target), base)
	}
	replaced, err := u.makeRoom(target, hdr)
	if err != nil {
		return err
	}
	if err := u.create(target, hdr, r); err != nil {
		return err
	}
	if hdr.Typeflag == tar.TypeDir && replaced {
		// The layer deletes what was below and makes the directory anew.
		return u.makeOpaque(target)
	}
	return nil
}

// resolve turns a tar name into a path below the root whose parent exists. A name with
// ".." is refused rather than cleaned: nothing honest writes one.
func (u *unpacker) resolve(name string) (string, error) {
	if slices.Contains(strings.Split(name, "/"), "..") {
		return "", ErrUnsafePath
	}
	clean := path.Clean("/" + name)[1:]
	if clean == "" {
		return ".", nil
	}
	dir, err := u.parent(path.Dir(clean))
	if err != nil {
		return "", err
	}
	return path.Join(dir, path.Base(clean)), nil
}

// makeRoom removes what stands at target, unless both it and the entry are directories.
// It says whether that was a whiteout.
func (u *unpacker) makeRoom(target string, hdr *tar.Header) (whiteout bool, err error) {
	st, err := u.root.Lstat(target)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if st.IsDir() && hdr.Typeflag == tar.TypeDir {
		return false, nil
	}
	if target == "." {
		return false, fmt.Errorf("%w: the root is no directory", ErrBadArchive)
	}
	clear(u.parents)
	return isWhiteout(st), u.root.RemoveAll(target)
}

// create makes the entry with all its attributes.
func (u *unpacker) create(target string, hdr *tar.Header, r io.Reader) error {
	switch hdr.Typeflag {
	case tar.TypeDir:
		return u.directory(target, hdr)
	case tar.TypeReg:
		return u.regular(target, hdr, r)
	case tar.TypeLink:
		old, err := u.resolve(hdr.Linkname)
		if err != nil {
			return err
		}
		return u.root.Link(old, target)
	case tar.TypeSymlink:
		clear(u.parents)
		if err := u.root.Symlink(hdr.Linkname, target); err != nil {
			return err
		}
		return u.root.Lchown(target, hdr.Uid, hdr.Gid)
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		return u.special(target, hdr)
	}
	return nil // sparse maps and vendor types carry nothing for a root file system
}

func (u *unpacker) directory(target string, hdr *tar.Header) error {
	if err := u.root.Mkdir(target, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	f, err := u.root.Open(target)
	if err != nil {
		return err
	}
	defer f.Close()
	u.dirs = append(u.dirs, &tar.Header{Name: target, ModTime: hdr.ModTime})
	return setAttributes(f, hdr)
}

func (u *unpacker) regular(target string, hdr *tar.Header, r io.Reader) error {
	if err := createFile(u.root, target, r, func(f *os.File) error { return setAttributes(f, hdr) }); err != nil {
		return err
	}
	return u.root.Chtimes(target, hdr.ModTime, hdr.ModTime)
}

func (u *unpacker) special(target string, hdr *tar.Header) error {
	mode := uint32(hdr.Mode & 0o7777)
	switch hdr.Typeflag {
	case tar.TypeChar:
		mode |= unix.S_IFCHR
	case tar.TypeBlock:
		mode |= unix.S_IFBLK
	default:
		mode |= unix.S_IFIFO
	}
	device := unix.Mkdev(uint32(hdr.Devmajor), uint32(hdr.Devminor))
	return createSpecial(u.root, target, mode, device, hdr.Uid, hdr.Gid)
}

// setAttributes sets owner, extended attributes and mode, in this order: a change of owner
// drops file capabilities and set-id bits.
func setAttributes(f *os.File, hdr *tar.Header) error {
	if err := f.Chown(hdr.Uid, hdr.Gid); err != nil {
		return err
	}
	for key, value := range hdr.PAXRecords {
		attr, ok := strings.CutPrefix(key, "SCHILY.xattr.")
		// An image must not speak to overlayfs: a redirect could point anywhere.
		if !ok || strings.Contains(attr, ".overlay.") {
			continue
		}
		err := unix.Fsetxattr(int(f.Fd()), attr, []byte(value), 0)
		if err != nil && !errors.Is(err, unix.ENOTSUP) {
			return fmt.Errorf("xattr %s: %w", attr, err)
		}
	}
	return f.Chmod(hdr.FileInfo().Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky))
}

// splitPath gives the components of a slash-separated path.
func splitPath(p string) []string {
	return strings.FieldsFunc(filepath.ToSlash(p), func(r rune) bool { return r == '/' })
}
