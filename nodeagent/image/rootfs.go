package image

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A container's root file system lives in a directory that its owner gives:
//
//	DIR/rootfs   the mount point, or the copy
//	DIR/upper    what the container wrote (overlay only)
//	DIR/work     overlayfs' own
//
// MountRootfs makes it for img and returns the path of rootfs. The caller holds Use.
func (s *Store) MountRootfs(img *Image, dir string) (string, error) {
	rootfs := filepath.Join(dir, "rootfs")
	if err := os.MkdirAll(rootfs, 0o755); err != nil {
		return "", err
	}
	var lower []string // nearest first, as overlayfs counts
	for i := len(img.Chain) - 1; i >= 0; i-- {
		lower = append(lower, s.layers.fs(img.Chain[i]))
	}
	if !s.overlay {
		return rootfs, copyLayers(rootfs, lower)
	}
	upper, work := filepath.Join(dir, "upper"), filepath.Join(dir, "work")
	for _, d := range []string{upper, work} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return "", err
		}
	}
	if len(lower) == 0 { // an image without layers: overlayfs wants one
		empty := filepath.Join(dir, "empty")
		if err := os.MkdirAll(empty, 0o755); err != nil {
			return "", err
		}
		lower = []string{empty}
	}
	if err := mountOverlay(rootfs, lower, upper, work); err != nil {
		return "", fmt.Errorf("root file system of %s: %w", img.ID, err)
	}
	return rootfs, nil
}

// UnmountRootfs undoes MountRootfs and deletes what the container wrote. It may be called
// again, and for a directory where nothing was mounted.
func UnmountRootfs(dir string) error {
	rootfs := filepath.Join(dir, "rootfs")
	err := unix.Unmount(rootfs, unix.MNT_DETACH)
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("unmount %s: %w", rootfs, err)
	}
	for _, d := range []string{"rootfs", "upper", "work", "empty"} {
		if err := os.RemoveAll(filepath.Join(dir, d)); err != nil {
			return err
		}
	}
	return nil
}

// mountOverlay mounts with the file-descriptor calls of Linux 6.5 where each layer is an
// option of its own; classic mount(2) options must fit into one page.
func mountOverlay(target string, lower []string, upper, work string) error {
	err := mountOverlayFD(target, lower, upper, work)
	if err == nil {
		return nil
	}
	opts := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", strings.Join(lower, ":"), upper, work)
	if len(opts) >= os.Getpagesize()-len(",volatile") {
		return fmt.Errorf("overlay: %w (and %d layers are too many for mount(2))", err, len(lower))
	}
	// volatile: what a container wrote need not survive a power cut, so no sync at unmount.
	if unix.Mount("overlay", target, "overlay", 0, opts+",volatile") == nil {
		return nil
	}
	if err := unix.Mount("overlay", target, "overlay", 0, opts); err != nil {
		return fmt.Errorf("overlay: %w", err)
	}
	return nil
}

func mountOverlayFD(target string, lower []string, upper, work string) error {
	fsfd, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(fsfd)
	for _, l := range lower {
		if err := unix.FsconfigSetString(fsfd, "lowerdir+", l); err != nil {
			return err
		}
	}
	for key, value := range map[string]string{"upperdir": upper, "workdir": work} {
		if err := unix.FsconfigSetString(fsfd, key, value); err != nil {
			return err
		}
	}
	if err := unix.FsconfigSetFlag(fsfd, "volatile"); err != nil {
		return err
	}
	if err := unix.FsconfigCreate(fsfd); err != nil {
		return err
	}
	mfd, err := unix.Fsmount(fsfd, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(mfd)
	return unix.MoveMount(mfd, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// probeOverlay tries an overlay mount in dir: the file system below may not carry one
// (overlay on overlay), or mounting may not be allowed.
func probeOverlay(dir string) bool {
	tmp, err := os.MkdirTemp(dir, "probe-")
	if err != nil {
		return false
	}
	defer os.RemoveAll(tmp)
	paths := map[string]string{}
	for _, d := range []string{"lower", "upper", "work", "rootfs"} {
		paths[d] = filepath.Join(tmp, d)
		if err := os.Mkdir(paths[d], 0o700); err != nil {
			return false
		}
	}
	if mountOverlay(paths["rootfs"], []string{paths["lower"]}, paths["upper"], paths["work"]) != nil {
		return false
	}
	return unix.Unmount(paths["rootfs"], unix.MNT_DETACH) == nil
}
