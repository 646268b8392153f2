package logs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// Rotate renames the log at path when it is larger than maxBytes, has reopen tell the runtime to start a new
// file, and removes the oldest files so that maxFiles remain, the new one included. If reopen fails the
// name is given back, so that nothing is lost and the next attempt finds the log as it was.
func Rotate(path string, maxBytes int64, maxFiles int, now time.Time, reopen func() error) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || info.Size() <= maxBytes {
		return err
	}
	rotated := path + "." + now.UTC().Format(rotatedFormat)
	if err := os.Rename(path, rotated); err != nil {
		return fmt.Errorf("rotate log: %w", err)
	}
	if err := reopen(); err != nil {
		return errors.Join(fmt.Errorf("reopen log: %w", err), os.Rename(rotated, path))
	}
	return prune(path, maxFiles)
}

func prune(path string, maxFiles int) error {
	files, err := Rotated(path)
	if err != nil {
		return err
	}
	for len(files) > max(maxFiles-1, 0) {
		if err := os.Remove(files[0]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		files = files[1:]
	}
	return nil
}
