package mvcc

import (
	"errors"
	"fmt"

	"go.etcd.io/bbolt"
)

// Rebase makes the store in a closed file the beginning of another history, for a restore from a backup. Its
// revision grows by bump, and everything before is compacted: whoever has seen revisions that came after
// the backup must have given them up before they can come again with another content. Notes that keep does not
// want are removed. It returns the raft index that the file has now, one more than before.
func Rebase(path string, bump int64, keep func(name string) bool) (applied uint64, err error) {
	if bump <= 0 {
		return 0, fmt.Errorf("%w: revision bump of %d", ErrInvalidOp, bump)
	}
	f, err := openFile(path)
	if err != nil {
		return 0, err
	}
	err = f.db.Update(func(tx *bbolt.Tx) error {
		m := readMeta(tx)
		m.applied++
		m.revision += bump
		m.compacted = m.revision
		applied = m.applied
		var gone []Note
		err := tx.Bucket(notesBucket).ForEach(func(name, _ []byte) error {
			if !keep(string(name)) {
				gone = append(gone, Note{Name: string(name)})
			}
			return nil
		})
		return errors.Join(err, writeNotes(tx, gone), m.write(tx))
	})
	return applied, errors.Join(err, f.db.Close())
}
