package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// FileConfig is where the audit log is written, and how long it is kept: a file to which lines are added, and files with the
// lines before, whose names have the time at which they were set aside: audit-2026-11-30T12-04-27.000.log.
type FileConfig struct {
	Path       string // "-" is the standard output, of which nothing is set aside
	MaxSizeMB  int    // the file is set aside before it is larger; 0: never
	MaxAgeDays int    // older files are removed; 0: none for its age
	MaxBackups int    // so many are kept beside the file; 0: all
	Compress   bool   // files that are set aside, with gzip
	Mode       Mode
	Batch      BatchConfig // of ModeBatch
}

// file is the sink of a FileConfig.
type file struct {
	config FileConfig
	now    func() time.Time

	mu     sync.Mutex // guards what follows; the innermost lock
	out    *os.File
	size   int64
	buffer bytes.Buffer // reused

	backups sync.WaitGroup // of the goroutine that looks after them
	tidying sync.Mutex     // held by it
}

func openFile(config FileConfig) (*file, error) {
	f := &file{config: config, now: time.Now}
	if config.Path == "-" {
		f.out = os.Stdout
		return f, nil
	}
	if err := os.MkdirAll(filepath.Dir(config.Path), 0o700); err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	if err := f.open(); err != nil {
		return nil, err
	}
	f.tidy()
	return f, nil
}

// open opens the file at the end of what is in it. Who may read it reads who did what: it is for the owner alone.
func (f *file) open() error {
	out, err := os.OpenFile(f.config.Path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	info, err := out.Stat()
	if err != nil {
		out.Close()
		return fmt.Errorf("audit log: %w", err)
	}
	f.out, f.size = out, info.Size()
	return nil
}

// write implements sink: whole lines or none.
func (f *file) write(events [][]byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.buffer.Reset()
	for _, event := range events {
		f.buffer.Write(event)
		f.buffer.WriteByte('\n')
	}
	if err := f.makeRoom(int64(f.buffer.Len())); err != nil {
		return err
	}
	n, err := f.out.Write(f.buffer.Bytes())
	if err != nil {
		if n > 0 && f.out.Truncate(f.size) != nil { // part of a line would spoil the next one
			f.size += int64(n)
		}
		return fmt.Errorf("audit log: %w", err)
	}
	f.size += int64(n)
	if f.buffer.Cap() > maxIdleBuffer {
		f.buffer = bytes.Buffer{}
	}
	return nil
}

// maxIdleBuffer is how much memory a file keeps for the next event.
const maxIdleBuffer = 1 << 20

// makeRoom sets the file aside if n bytes more would be too many.
func (f *file) makeRoom(n int64) error {
	limit := int64(f.config.MaxSizeMB) << 20
	if f.config.Path == "-" || limit == 0 || f.size == 0 || f.size+n <= limit {
		return nil
	}
	// It may be gone: somebody else has set it aside, or it could not be opened anew the last time.
	if err := os.Rename(f.config.Path, f.backupName(f.now())); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("audit log: %w", err)
	}
	old := f.out
	if err := f.open(); err != nil {
		return err // the next write tries again
	}
	old.Close()
	f.tidy()
	return nil
}

// close implements sink.
func (f *file) close() error {
	f.backups.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.config.Path == "-" {
		return nil
	}
	return f.out.Close()
}
