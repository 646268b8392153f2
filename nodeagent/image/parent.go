package image

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// maxSymlinks is the kernel's own limit on links followed in one path.
const maxSymlinks = 40

// parent resolves the directory dir of a tar entry as the finished root file system would:
// symbolic links of this layer and of those below are followed, and directories that the
// tar does not mention are made here with the attributes they have below. The answer
// exists in this layer and contains no symbolic link.
func (u *unpacker) parent(dir string) (string, error) {
	if p, ok := u.parents[dir]; ok {
		return p, nil
	}
	cur, todo, links := ".", splitPath(dir), 0
	for len(todo) > 0 {
		comp := todo[0]
		todo = todo[1:]
		switch comp {
		case ".":
			continue
		case "..":
			cur = path.Dir(cur) // of a symbolic link; the root's parent is the root
			continue
		}
		next := path.Join(cur, comp)
		target, isLink, err := u.enter(next)
		if err != nil {
			return "", err
		}
		if !isLink {
			cur = next
			continue
		}
		if links++; links > maxSymlinks {
			return "", fmt.Errorf("%w: too many symbolic links", ErrUnsafePath)
		}
		if strings.HasPrefix(target, "/") {
			cur = "."
		}
		todo = append(splitPath(target), todo...)
	}
	u.parents[dir] = cur
	return cur, nil
}

// enter makes sure that name is a directory in this layer, or says which link stands there.
func (u *unpacker) enter(name string) (target string, isLink bool, err error) {
	st, owner, err := u.lookup(name)
	switch {
	case err != nil:
		return "", false, err
	case st == nil:
		return "", false, u.root.Mkdir(name, 0o755)
	case st.Mode().Type() == fs.ModeSymlink:
		target, err = owner.Readlink(name)
		return target, true, err
	case st.IsDir() && owner == u.root:
		return "", false, nil
	case st.IsDir():
		return "", false, u.copyDir(owner, name)
	case owner == u.root && isWhiteout(st):
		if err := u.root.Remove(name); err != nil {
			return "", false, err
		}
		if err := u.root.Mkdir(name, 0o755); err != nil {
			return "", false, err
		}
		return "", false, u.makeOpaque(name)
	case owner == u.root:
		return "", false, fmt.Errorf("%w: %s is no directory", ErrBadArchive, name)
	}
	return "", false, u.root.Mkdir(name, 0o755) // a file below gives way to a directory
}

// lookup finds what the merged file system has at name: this layer's, else the nearest
// below that is not hidden. A nil FileInfo means there is nothing.
func (u *unpacker) lookup(name string) (fs.FileInfo, *os.Root, error) {
	for i, layer := range append([]*os.Root{u.root}, u.lower...) {
		st, err := layer.Lstat(name)
		if err == nil {
			if i > 0 && isWhiteout(st) {
				return nil, nil, nil
			}
			return st, layer, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
			return nil, nil, err
		}
		if hidesBelow(layer, path.Dir(name)) {
			return nil, nil, nil
		}
	}
	return nil, nil, nil
}

// hidesBelow says whether layer hides what lower layers have in dir: a directory on the
// way is opaque, or is no directory at all.
func hidesBelow(layer *os.Root, dir string) bool {
	for ; dir != "."; dir = path.Dir(dir) {
		st, err := layer.Lstat(dir)
		if err != nil {
			continue
		}
		if !st.IsDir() || isOpaque(layer, dir) {
			return true
		}
	}
	return isOpaque(layer, ".")
}

// copyDir makes the directory name with the owner, mode and times it has in from.
func (u *unpacker) copyDir(from *os.Root, name string) error {
	src, err := from.Open(name)
	if err != nil {
		return err
	}
	defer src.Close()
	if err := u.root.Mkdir(name, 0o700); err != nil {
		return err
	}
	dst, err := u.root.Open(name)
	if err != nil {
		return err
	}
	defer dst.Close()
	if err := copyAttributes(src, dst); err != nil {
		return err
	}
	return nil
}
