package audit

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// backupTime is the layout of the time in a backup's name: it sorts, and every file system takes it.
const backupTime = "2006-01-02T15-04-05.000"

const compressed = ".gz"

// backupName is what the file is called once it is set aside.
func (f *file) backupName(at time.Time) string {
	extension := filepath.Ext(f.config.Path)
	base := strings.TrimSuffix(f.config.Path, extension)
	for {
		name := base + "-" + at.UTC().Format(backupTime) + extension
		if _, err := os.Lstat(name); os.IsNotExist(err) {
			return name
		}
		at = at.Add(time.Millisecond) // two within one
	}
}

// backup is a file that was set aside.
type backup struct {
	path string
	at   time.Time
}

// listBackups returns them, oldest first.
func (f *file) listBackups() (found []backup) {
	extension := filepath.Ext(f.config.Path)
	start := strings.TrimSuffix(filepath.Base(f.config.Path), extension) + "-"
	entries, err := os.ReadDir(filepath.Dir(f.config.Path))
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		name, ok := strings.CutPrefix(strings.TrimSuffix(entry.Name(), compressed), start)
		if !ok {
			continue
		}
		if at, err := time.Parse(backupTime+extension, name); err == nil {
			found = append(found, backup{filepath.Join(filepath.Dir(f.config.Path), entry.Name()), at})
		}
	}
	slices.SortFunc(found, func(a, b backup) int { return a.at.Compare(b.at) })
	return found
}

// tidy removes the backups that are too many or too old, and compresses the others, in a goroutine that close waits for. What cannot
// be done now is done the next time.
func (f *file) tidy() {
	f.backups.Go(func() {
		f.tidying.Lock()
		defer f.tidying.Unlock()
		found := f.listBackups()
		surplus := 0
		if f.config.MaxBackups > 0 {
			surplus = len(found) - f.config.MaxBackups
		}
		for i, b := range found {
			age := f.now().Sub(b.at)
			if i < surplus || f.config.MaxAgeDays > 0 && age > time.Duration(f.config.MaxAgeDays)*24*time.Hour {
				_ = os.Remove(b.path)
			} else if f.config.Compress && !strings.HasSuffix(b.path, compressed) {
				_ = compress(b.path)
			}
		}
	})
}

// compress replaces a file by one that gzip has made of it.
func compress(path string) (err error) {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	part := path + compressed + ".part"
	out, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(part) // is gone if all went well
	w := gzip.NewWriter(out)
	_, err = io.Copy(w, in)
	for _, step := range []func() error{w.Close, out.Close} {
		if e := step(); err == nil {
			err = e
		}
	}
	if err != nil {
		return err
	}
	if err := os.Rename(part, path+compressed); err != nil {
		return err
	}
	return os.Remove(path)
}
