package image

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// createFile makes a regular file with what r has and, once it is written, the attributes that set gives it: a
// write would drop set-id bits and file capabilities again.
func createFile(root *os.Root, name string, r io.Reader, set func(*os.File) error) error {
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.Copy(f, r); err != nil {
		return err
	}
	if err := set(f); err != nil {
		return err
	}
	return f.Close()
}

// createSpecial makes a device or FIFO. Where devices may not be made (a container without CAP_MKNOD) they are
// left out: runc makes the standard ones anyway.
func createSpecial(root *os.Root, name string, mode uint32, device uint64, uid, gid int) error {
	dir, err := root.Open(path.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	err = unix.Mknodat(int(dir.Fd()), path.Base(name), mode, int(device))
	if errors.Is(err, unix.EPERM) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := root.Lchown(name, uid, gid); err != nil {
		return err
	}
	return root.Chmod(name, fs.FileMode(mode&0o777)) // mknod was subject to the umask
}
