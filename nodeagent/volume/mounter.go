package volume

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// HostMounter makes mounts in this process's mount namespace; it needs CAP_SYS_ADMIN.
type HostMounter struct{}

// Bind mounts source on target.
func (HostMounter) Bind(source, target string) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("bind mount on %s: %w", target, err)
	}
	return nil
}

// Tmpfs mounts a memory file system of the given size on target; 0 is the kernel's default (half the memory).
func (HostMounter) Tmpfs(target string, sizeBytes int64) error {
	options := ""
	if sizeBytes > 0 {
		options = fmt.Sprintf("size=%d", sizeBytes)
	}
	return unix.Mount("tmpfs", target, "tmpfs", 0, options)
}

// Unmount detaches whatever is mounted at target, several layers if there are.
func (HostMounter) Unmount(target string) error {
	for {
		err := unix.Unmount(target, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		switch {
		case err == nil:
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
			return nil
		default:
			return err
		}
	}
}
