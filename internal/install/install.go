package install

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Options of Install.
type Options struct {
	Layout
	Role Role
	// Program is the program, with what belongs beside it in the same directory, as `make build` makes it.
	Program string
	// Config is the text of the file with the flags. Nil keeps the one that is there.
	Config []byte
	// Out is told what is done.
	Out io.Writer
}

// beside is what a node needs beside the program. It may be missing: a node with another runtime needs none of it.
var beside = []string{"kontiki-shim", "runc", "cni", "images"}

// Install writes all files, the unit last.
func Install(o Options) error {
	for _, name := range beside {
		if err := copyAll(filepath.Join(filepath.Dir(o.Program), name), filepath.Join(o.Lib(), name)); err != nil {
			return fmt.Errorf("install %s: %w", name, err)
		}
	}
	if err := copyAll(o.Program, o.Layout.Program()); err != nil {
		return fmt.Errorf("install: %w", err)
	}
	link, err := filepath.Rel(filepath.Dir(o.Link()), o.Layout.Program())
	if err != nil {
		return err
	}
	if err := replace(o.Link(), func(path string) error { return os.Symlink(link, path) }); err != nil {
		return fmt.Errorf("install: %w", err)
	}
	if _, err := os.Stat(o.Layout.Config(o.Role)); err != nil || o.Config != nil {
		if err := writeFile(o.Layout.Config(o.Role), o.Config, 0o600); err != nil {
			return fmt.Errorf("install: %w", err)
		}
	}
	if err := writeFile(o.Unit(o.Role), []byte(o.unitText(o.Role)), 0o644); err != nil {
		return fmt.Errorf("install: %w", err)
	}
	fmt.Fprintf(o.Out, "installed %s, %s and %s\n", o.Layout.Program(), o.Layout.Config(o.Role), o.Unit(o.Role))
	return nil
}

// copyAll copies a file or a directory of files; one that is not there is skipped.
func copyAll(from, to string) error {
	info, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if same, err := os.Stat(to); err == nil && os.SameFile(info, same) {
		return nil // it is installed from where it was installed
	}
	if !info.IsDir() {
		return copyFile(from, to, info.Mode().Perm())
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := copyAll(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string, mode fs.FileMode) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	return replace(to, func(path string) error {
		target, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
		if err != nil {
			return err
		}
		_, err = io.Copy(target, source)
		return errors.Join(err, target.Sync(), target.Close())
	})
}

func writeFile(path string, text []byte, mode fs.FileMode) error {
	return replace(path, func(path string) error {
		if err := os.WriteFile(path, text, mode); err != nil {
			return err
		}
		return os.Chmod(path, mode) // whatever the umask
	})
}

// replace has write make a file beside path and renames it: a program that runs goes on with the old one.
func replace(path string, write func(path string) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	fresh := path + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := write(fresh); err != nil {
		return errors.Join(err, os.Remove(fresh))
	}
	return os.Rename(fresh, path)
}
