package simulation

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"kontiki/raftstore"
)

// process is one life of a member, from its start to its death. Each life has a directory of its own:
// the first is empty, others are copies of what the life before left.
type process struct {
	name   string // of the member
	life   int
	dir    string
	member *raftstore.Member
	port   *port
	disk   *disk
	log    *logDisk // nil with raft-boltdb, whose files are in dir
	gate   *gate
	alive  context.Context // ends at death: what it says afterwards, nobody hears
	die    context.CancelFunc
}

func (p *process) String() string { return fmt.Sprintf("%s.%d", p.name, p.life) }

func (p *process) isAlive() bool { return p.alive.Err() == nil }

// copyDir copies a directory. Everybody who could write to it must be asleep. Holes stay holes: the
// files of bbolt are large and nearly empty.
func copyDir(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.MkdirAll(filepath.Join(to, name), 0o700)
		}
		return copyFile(path, filepath.Join(to, name))
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	for at := int64(0); at < info.Size(); {
		begin, err := unix.Seek(int(in.Fd()), at, unix.SEEK_DATA)
		if err == unix.ENXIO {
			break // only a hole is left
		}
		if err != nil {
			return err
		}
		if at, err = unix.Seek(int(in.Fd()), begin, unix.SEEK_HOLE); err != nil {
			return err
		}
		if _, err := io.Copy(io.NewOffsetWriter(out, begin), io.NewSectionReader(in, begin, at-begin)); err != nil {
			return err
		}
	}
	return out.Truncate(info.Size())
}
