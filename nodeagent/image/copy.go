package image

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// copyLayers builds a root file system by copying layers (nearest first) over each other,
// for machines without overlayfs.
func copyLayers(dst string, lower []string) error {
	to, err := os.OpenRoot(dst)
	if err != nil {
		return err
	}
	defer to.Close()
	for _, dir := range slices.Backward(lower) {
		if err := copyLayer(to, dir); err != nil {
			return fmt.Errorf("copy layer %s: %w", dir, err)
		}
	}
	return nil
}

// layerCopy is one layer being copied.
type layerCopy struct {
	from, to *os.Root
	links    map[uint64]string // inode → first path, for hard links
}

func copyLayer(to *os.Root, dir string) error {
	from, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer from.Close()
	c := &layerCopy{from: from, to: to, links: map[uint64]string{}}
	return filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		st, err := from.Lstat(rel)
		if err != nil {
			return err
		}
		return c.copy(rel, st)
	})
}

func (c *layerCopy) copy(rel string, st fs.FileInfo) error {
	if isWhiteout(st) {
		return c.to.RemoveAll(rel)
	}
	if st.IsDir() {
		return c.dir(rel)
	}
	if err := c.to.RemoveAll(rel); err != nil {
		return err
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%s: no stat", rel)
	}
	if first, ok := c.links[sys.Ino]; ok {
		return c.to.Link(first, rel)
	}
	if sys.Nlink > 1 {
		c.links[sys.Ino] = rel
	}
	switch st.Mode().Type() {
	case 0:
		return c.file(rel)
	case fs.ModeSymlink:
		target, err := c.from.Readlink(rel)
		if err != nil {
			return err
		}
		if err := c.to.Symlink(target, rel); err != nil {
			return err
		}
		return c.to.Lchown(rel, int(sys.Uid), int(sys.Gid))
	}
	return createSpecial(c.to, rel, sys.Mode, sys.Rdev, int(sys.Uid), int(sys.Gid))
}

func (c *layerCopy) dir(rel string) error {
	if rel != "." {
		st, err := c.to.Lstat(rel)
		exists := err == nil
		if exists && (!st.IsDir() || isOpaque(c.from, rel)) {
			if err := c.to.RemoveAll(rel); err != nil {
				return err
			}
			exists = false
		}
		if !exists {
			if err := c.to.Mkdir(rel, 0o700); err != nil {
				return err
			}
		}
	}
	return c.attributes(rel, os.O_RDONLY)
}

func (c *layerCopy) file(rel string) error {
	src, err := c.from.Open(rel)
	if err != nil {
		return err
	}
	defer src.Close()
	return createFile(c.to, rel, src, func(dst *os.File) error { return copyAttributes(src, dst) })
}

func (c *layerCopy) attributes(rel string, flag int) error {
	src, err := c.from.Open(rel)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := c.to.OpenFile(rel, flag, 0)
	if err != nil {
		return err
	}
	defer dst.Close()
	return copyAttributes(src, dst)
}

// copyAttributes gives dst the owner, extended attributes, mode and times of src.
func copyAttributes(src, dst *os.File) error {
	st, err := src.Stat()
	if err != nil {
		return err
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("no stat")
	}
	if err := dst.Chown(int(sys.Uid), int(sys.Gid)); err != nil {
		return err
	}
	if err := copyXattrs(int(src.Fd()), int(dst.Fd())); err != nil {
		return err
	}
	if err := dst.Chmod(st.Mode()); err != nil {
		return err
	}
	tv := []unix.Timeval{unix.NsecToTimeval(sys.Atim.Nano()), unix.NsecToTimeval(sys.Mtim.Nano())}
	return unix.Futimes(int(dst.Fd()), tv)
}

// copyXattrs leaves out overlayfs' own attributes, which mean something only in their layer.
func copyXattrs(src, dst int) error {
	buf := make([]byte, 64<<10) // XATTR_LIST_MAX
	n, err := unix.Flistxattr(src, buf)
	if errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	if err != nil {
		return err
	}
	value := make([]byte, 64<<10) // XATTR_SIZE_MAX
	for attr := range strings.SplitSeq(strings.TrimSuffix(string(buf[:n]), "\x00"), "\x00") {
		if attr == "" || strings.Contains(attr, ".overlay.") {
			continue
		}
		size, err := unix.Fgetxattr(src, attr, value)
		if err != nil {
			return fmt.Errorf("xattr %s: %w", attr, err)
		}
		err = unix.Fsetxattr(dst, attr, value[:size], 0)
		if err != nil && !errors.Is(err, unix.ENOTSUP) {
			return fmt.Errorf("xattr %s: %w", attr, err)
		}
	}
	return nil
}
