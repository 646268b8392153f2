package raftstore

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
)

// A snapshot, for a member that is too far behind or for a backup, is an mvcc file followed by the SHA-256 of
// its bytes. It is what etcd's Snapshot call delivers. docs/formats/snapshot.md has the details.

// SaveSnapshot writes a snapshot of this member's store, for RestoreSnapshot. Reads and writes go on.
func (m *Member) SaveSnapshot(w io.Writer) error { return writeSealed(w, m.store.WriteSnapshot) }

// writeSealed writes what content writes, and its checksum.
func writeSealed(w io.Writer, content func(io.Writer) error) error {
	sum := sha256.New()
	if err := content(io.MultiWriter(w, sum)); err != nil {
		return err
	}
	_, err := w.Write(sum.Sum(nil))
	return err
}

// unsealed reads what writeSealed has written, without the checksum. It ends with ErrSnapshotDamaged
// instead of io.EOF if that is not right; so who reads must not rely on anything before the end.
type unsealed struct {
	in   io.Reader
	sum  hash.Hash
	held []byte // the last bytes read: the checksum, if nothing follows
	size int64
}

func newUnsealed(in io.Reader) *unsealed { return &unsealed{in: in, sum: sha256.New()} }

// Read implements io.Reader.
func (u *unsealed) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	buf := make([]byte, len(p))
	for {
		n, err := u.in.Read(buf)
		u.held = append(u.held, buf[:n]...)
		free := min(len(u.held)-sha256.Size, len(p))
		if free > 0 {
			n := copy(p, u.held[:free])
			u.sum.Write(p[:n])
			u.size += int64(n)
			u.held = append(u.held[:0], u.held[n:]...)
			return n, nil
		}
		if err == io.EOF {
			return 0, u.verify()
		}
		if err != nil {
			return 0, err
		}
	}
}

func (u *unsealed) verify() error {
	if !bytes.Equal(u.held, u.sum.Sum(nil)) {
		return fmt.Errorf("%w: the checksum of its %d bytes is another", ErrSnapshotDamaged, u.size)
	}
	return io.EOF
}
