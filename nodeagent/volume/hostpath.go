package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
)

// checkHostPath makes the path if its type says so, and checks that it is what the type says.
func checkHostPath(src *corev1.HostPathVolumeSource) error {
	kind := corev1.HostPathUnset
	if src.Type != nil {
		kind = *src.Type
	}
	if kind == corev1.HostPathUnset {
		return nil // the runtime makes a missing directory, or fails
	}
	info, err := os.Stat(src.Path)
	if errors.Is(err, fs.ErrNotExist) {
		switch kind {
		case corev1.HostPathDirectoryOrCreate:
			return os.MkdirAll(src.Path, 0o755)
		case corev1.HostPathFileOrCreate:
			return createFile(src.Path)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %s is not a %s: %w", ErrHostPath, src.Path, kind, err)
	}
	mode, ok := info.Mode(), false
	switch kind {
	case corev1.HostPathDirectory, corev1.HostPathDirectoryOrCreate:
		ok = mode.IsDir()
	case corev1.HostPathFile, corev1.HostPathFileOrCreate:
		ok = mode.IsRegular()
	case corev1.HostPathSocket:
		ok = mode.Type() == fs.ModeSocket
	case corev1.HostPathCharDev:
		ok = mode.Type() == fs.ModeDevice|fs.ModeCharDevice
	case corev1.HostPathBlockDev:
		ok = mode.Type() == fs.ModeDevice
	}
	if !ok {
		return fmt.Errorf("%w: %s is not a %s", ErrHostPath, src.Path, kind)
	}
	return nil
}

func createFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}
