package raftstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// marksFile keeps the marks of retention across restarts. It is this member's own, beside the replicated state,
// and it holds ages, not times: how long ago a revision was the newest, in time that this member was running.
// So it does not matter what the clock of the machine said before, or does now: history is kept for as long as
// the member did not run in addition, never shorter. What is written down is at most one interval old, and a
// file that is lost or damaged means to begin anew.
const marksFile = "history.json"

// savedMark is a mark in the file.
type savedMark struct {
	Revision  int64 `json:"revision"`
	AgeMillis int64 `json:"ageMillis"`
}

func (r *retention) save(dir string, now time.Time) error {
	saved := make([]savedMark, len(r.marks))
	for i, m := range r.marks {
		saved[i] = savedMark{m.revision, now.Sub(m.at).Milliseconds()}
	}
	b, err := json.Marshal(saved)
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(dir, marksFile), append(b, '\n'))
}

// replaceFile puts content at path whole or not at all, and on disk when it returns: a name that points to bytes which
// a power cut took would be as good as no file.
func replaceFile(path string, content []byte) error {
	f, err := os.OpenFile(path+".tmp", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// load takes up what save wrote. Newest is the store's newest revision; a mark beyond it is of another life of the directory.
func (r *retention) load(dir string, now time.Time, newest int64) error {
	b, err := os.ReadFile(filepath.Join(dir, marksFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	marks, err := decodeMarks(b, now, newest)
	if err != nil {
		return err
	}
	r.marks = marks
	return nil
}

func decodeMarks(b []byte, now time.Time, newest int64) (marks []mark, err error) {
	var saved []savedMark
	if err := json.Unmarshal(b, &saved); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrFormat, marksFile, err)
	}
	for i, s := range saved {
		if s.AgeMillis < 0 || s.AgeMillis > maxAgeMillis || s.Revision < 1 || i > 0 && (s.AgeMillis > saved[i-1].AgeMillis || s.Revision <= saved[i-1].Revision) {
			return nil, fmt.Errorf("%w: %s: mark %d does not follow the one before", ErrFormat, marksFile, i)
		}
		if s.Revision <= newest {
			marks = append(marks, mark{now.Add(-time.Duration(s.AgeMillis) * time.Millisecond), s.Revision})
		}
	}
	return marks, nil
}

const maxAgeMillis = int64(100 * 365 * 24 * time.Hour / time.Millisecond)
