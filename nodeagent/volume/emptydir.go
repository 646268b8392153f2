package volume

import (
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
)

// emptyDir makes the directory once: 0777 and, with an fsGroup, owned by that group with the setgid bit,
// so that what containers make there belongs to the group too.
func (m *Manager) emptyDir(dir string, src *corev1.EmptyDirVolumeSource, group *int64) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if src.Medium == corev1.StorageMediumMemory && m.Mounter != nil {
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
