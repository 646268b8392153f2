package pki

import (
	"fmt"
	"os"
	"path/filepath"
)

// WriteFile puts data at path with mode 0600, whole or not at all, and on disk when it returns.
func WriteFile(path string, data []byte) error {
	if err := writeFile(path, data); err != nil {
		return fmt.Errorf("pki: %w", err)
	}
	return nil
}

// writeFile puts data at path with mode 0600, whole or not at all, and on disk when it returns.
func writeFile(path string, data []byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*") // CreateTemp's mode is 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // after the rename there is nothing to remove
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
