package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// SubPath returns the host path that a volumeMount with a subPath mounts. What the volume holds is in
// the hands of its containers, and a symlink there must not lead to the host's files
// (CVE-2017-1002101, CVE-2021-25741): the kernel resolves the path beneath the volume (openat2),
// and the open file is bind mounted, so that nothing can be swapped between check and use.
func (m *Manager) SubPath(uid types.UID, v *corev1.Volume, volumePath, subPath, container string, index int) (string, error) {
	if !filepath.IsLocal(subPath) {
		return "", fmt.Errorf("%w %q must be a relative path without '..'", ErrSubPath, subPath)
	}
	fd, err := openBeneath(volumePath, subPath, fsMode(v))
	if errors.Is(err, unix.EXDEV) || errors.Is(err, unix.ELOOP) {
		return "", fmt.Errorf("%w %q leads out of the volume through a symlink", ErrSubPath, subPath)
	}
	if err != nil {
		return "", fmt.Errorf("%w %q: %w", ErrSubPath, subPath, err)
	}
	defer unix.Close(fd)
	if m.Mounter == nil {
		return filepath.Join(volumePath, subPath), nil
	}
	target := filepath.Join(m.PodDir(uid), "volume-subpaths", v.Name, container, strconv.Itoa(index))
	if err := m.makeTarget(target, fd); err != nil {
		return "", fmt.Errorf("%w %q: %w", ErrSubPath, subPath, err)
	}
	return target, m.Mounter.Bind(fmt.Sprintf("/proc/self/fd/%d", fd), target)
}

// fsMode is the mode of directories that a subPath creates: an emptyDir's are open to all.
func fsMode(v *corev1.Volume) uint32 {
	if v.EmptyDir != nil {
		return 0o777
	}
	return 0o755
}

// makeTarget leaves an empty file or directory, whatever fd is, that nothing is mounted on.
func (m *Manager) makeTarget(target string, fd int) error {
	if err := m.Mounter.Unmount(target); err != nil {
		return err
	}
	if err := os.Remove(target); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return os.MkdirAll(target, 0o755)
	}
	return createFile(target)
}

// openBeneath opens path below root, making missing directories; no step may leave root.
func openBeneath(root, path string, mode uint32) (int, error) {
	dir, err := unix.Open(root, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(dir)
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(dir, path, how)
	if !errors.Is(err, unix.ENOENT) || filepath.Clean(path) == "." {
		return fd, err
	}
	parent, err := openBeneath(root, filepath.Dir(filepath.Clean(path)), mode)
	if err != nil {
		return -1, err
	}
	defer unix.Close(parent)
	name := filepath.Base(path)
	switch err := unix.Mkdirat(parent, name, mode); {
	case err == nil:
		if err := unix.Fchmodat(parent, name, mode, 0); err != nil { // the umask took bits away
			return -1, err
		}
	case !errors.Is(err, unix.EEXIST):
		return -1, err
	}
	return unix.Openat2(dir, path, how)
}
