package logs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// rotatedFormat is the suffix of a rotated file. It sorts by time.
const rotatedFormat = "20060102-150405.000000000"

// Rotated lists the rotated files of the log at path, the oldest first.
func Rotated(path string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(filepath.Dir(path), filepath.Base(path)+".*"))
	slices.Sort(files)
	return files, err
}

// openChain opens all files of a log, the oldest first. Files that a rotation removes meanwhile are
// left out; a file that it renames meanwhile is opened once.
func openChain(path string) ([]*os.File, error) {
	names, err := Rotated(path)
	if err != nil {
		return nil, err
	}
	var chain []*os.File
	for _, name := range append(names, path) {
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			closeAll(chain)
			return nil, err
		}
		if len(chain) > 0 && sameFile(chain[len(chain)-1], f) {
			f.Close()
			continue
		}
		chain = append(chain, f)
	}
	if len(chain) == 0 {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return chain, nil
}

// after returns the files that follow f in the log at path: all of them if f itself was removed.
func after(path string, f *os.File) ([]*os.File, error) {
	chain, err := openChain(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range chain {
		if sameFile(chain[i], f) {
			closeAll(chain[:i+1])
			return chain[i+1:], nil
		}
	}
	return chain, nil
}

func sameFile(a, b *os.File) bool {
	ia, errA := a.Stat()
	ib, errB := b.Stat()
	return errA == nil && errB == nil && os.SameFile(ia, ib)
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
