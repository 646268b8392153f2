package volume

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The files of an API volume change together. The volume directory holds
//
//	..data -> ..v_1234567        the current version
//	..v_1234567/nginx/nginx.conf the files
//	nginx -> ..data/nginx        one link per top-level name
//
// An update writes a new version directory and renames a new "..data" link over the old one: a reader
// that opened the old directory keeps it, and no reader sees a mix (ND-10). The version before the current one stays until
// the next look, for readers that have just followed the link. After a crash between any two steps the volume is
// still whole; the next write removes what was left over.
const (
	dataLink      = "..data"
	newDataLink   = "..data_tmp"
	versionPrefix = "..v_"
	// expiryFile keeps when each token of a version expires: path to unix seconds.
	expiryFile = "..expires"
)

// write makes dir hold exactly files. When it already does, nothing is touched.
func write(dir string, files payload, group *int64) error {
	for path := range files {
		if !validPath(path) {
			return fmt.Errorf("%w: %q", ErrFileName, path)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if equal(readPayload(dir), files, group != nil) {
		return tidy(dir, files, "")
	}
	previous, _ := os.Readlink(filepath.Join(dir, dataLink)) // there is none the first time
	version, err := writeVersion(dir, files, group)
	if err != nil {
		return err
	}
	if err := swap(dir, dataLink, filepath.Base(version)); err != nil {
		return err
	}
	return tidy(dir, files, previous)
}

func validPath(path string) bool {
	return path != "" && filepath.IsLocal(path) && !strings.HasPrefix(path, "..") && !slices.Contains(strings.Split(path, "/"), "..")
}

func equal(have, want payload, grouped bool) bool {
	return maps.EqualFunc(have, want, func(a, b file) bool {
		return bytes.Equal(a.data, b.data) && a.expires == b.expires && a.mode == groupMode(b.mode, grouped)
	})
}

// groupMode adds what a group needs to read a file when there is an fsGroup.
func groupMode(mode int32, grouped bool) int32 {
	if grouped {
		return mode | 0o440
	}
	return mode
}

func writeVersion(dir string, files payload, group *int64) (string, error) {
	version, err := os.MkdirTemp(dir, versionPrefix)
	if err != nil {
		return "", err
	}
	if err := os.Chmod(version, 0o755); err != nil {
		return "", err
	}
	expires := map[string]int64{}
	for path, f := range files {
		if err := writeFile(filepath.Join(version, path), f, group); err != nil {
			return "", err
		}
		if f.expires != 0 {
			expires[path] = f.expires
		}
	}
	if len(expires) == 0 {
		return version, nil
	}
	data, err := json.Marshal(expires)
	if err != nil {
		return "", err
	}
	return version, os.WriteFile(filepath.Join(version, expiryFile), data, 0o600)
}

func writeFile(path string, f file, group *int64) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, f.data, 0o600); err != nil {
		return err
	}
	if group != nil {
		if err := os.Chown(path, -1, int(*group)); err != nil {
			return err
		}
	}
	return os.Chmod(path, os.FileMode(groupMode(f.mode, group != nil)))
}

// swap points link at target by one rename.
func swap(dir, link, target string) error {
	tmp := filepath.Join(dir, newDataLink)
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(target, tmp); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(dir, link))
}

// tidy makes the top-level links, and removes those of files that are gone and versions other than the current and the
// previous one.
func tidy(dir string, files payload, previous string) error {
	want := map[string]bool{dataLink: true, previous: true}
	for path := range files {
		top, _, _ := strings.Cut(path, "/")
		want[top] = true
		if _, err := os.Lstat(filepath.Join(dir, top)); err == nil {
			continue
		}
		if err := swap(dir, top, filepath.Join(dataLink, top)); err != nil {
			return err
		}
	}
	if current, err := os.Readlink(filepath.Join(dir, dataLink)); err == nil {
		want[current] = true
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !want[e.Name()] {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// readPayload reads the current version back; a volume that was never written is nil.
func readPayload(dir string) payload {
	root := filepath.Join(dir, dataLink)
	version, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil
	}
	expires := map[string]int64{}
	if data, err := os.ReadFile(filepath.Join(version, expiryFile)); err == nil {
		_ = json.Unmarshal(data, &expires) // unreadable: the tokens are made anew
	}
	files := payload{}
	err = filepath.WalkDir(version, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == expiryFile {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(version, path)
		files[name] = file{data: data, mode: int32(info.Mode().Perm()), expires: expires[name]}
		return err
	})
	if err != nil {
		return nil
	}
	return files
}
