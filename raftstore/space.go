package raftstore

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

// spaceInterval is how often a member looks at its space.
const spaceInterval = time.Second

// watchSpace is a goroutine: it raises NOSPACE before the store outgrows its quota by much, or the disk is full.
// The alarm is a write itself, so it has to come while there is still room for one.
func (m *Member) watchSpace(ctx context.Context) {
	alarm := Alarm{Kind: AlarmNoSpace, MemberID: m.cfg.NodeID}
	for pause(ctx, spaceInterval) {
		why, err := m.lacksSpace()
		if err != nil || why == "" || m.store.Note(alarm.note()) != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, m.cfg.RequestTimeout)
		err = m.raise(ctx, alarm)
		cancel()
		m.cfg.Log.Error("no space: nothing is added to the store until there is, and the alarm is cleared", "why", why, "err", err)
	}
}

// lacksSpace says what there is too little of, and nothing if there is enough.
func (m *Member) lacksSpace() (string, error) {
	st, err := m.store.Stats()
	if err != nil {
		return "", err
	}
	if st.InUseBytes > m.cfg.QuotaBytes {
		return fmt.Sprintf("%d bytes in use, the quota is %d", st.InUseBytes, m.cfg.QuotaBytes), nil
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(m.cfg.Dir, &fs); err != nil {
		return "", err
	}
	if free := int64(fs.Bavail) * int64(fs.Bsize); free < m.cfg.MinFreeBytes {
		return fmt.Sprintf("%d bytes free on the disk, %d are wanted", free, m.cfg.MinFreeBytes), nil
	}
	return "", nil
}
