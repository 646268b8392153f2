package volume

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// emptyDir makes the directory once: 0777 and, with an fsGroup, owned by that group with the setgid bit,
// so that what containers make there belongs to the group too.
// A memory file system that a reboot took away is made anew.
func (m *Manager) emptyDir(dir string, src *corev1.EmptyDirVolumeSource, group *int64) error {
	memory := src.Medium == corev1.StorageMediumMemory && m.Mounter != nil
	if _, err := os.Stat(dir); err == nil && (!memory || mounted(dir)) {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if memory {
		var size int64
		if src.SizeLimit != nil {
			size = src.SizeLimit.Value()
		}
		if err := m.Mounter.Tmpfs(dir, size); err != nil {
			os.Remove(dir)
			return fmt.Errorf("tmpfs: %w", err)
		}
	}
	return openToAll(dir, group)
}

// mounted says whether a file system is mounted on dir: then it is not the one that its parent is on.
func mounted(dir string) bool {
	var own, parent unix.Stat_t
	return unix.Stat(dir, &own) == nil && unix.Stat(filepath.Dir(dir), &parent) == nil && own.Dev != parent.Dev
}

func openToAll(dir string, group *int64) error {
	mode := os.FileMode(0o777)
	if group != nil {
		if err := os.Chown(dir, -1, int(*group)); err != nil {
			return err
		}
		mode |= os.ModeSetgid
	}
	return os.Chmod(dir, mode) // not subject to umask, as Mkdir's mode is
}
