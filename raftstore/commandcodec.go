package raftstore

import "kontiki/mvcc"

func (e *encoder) command(kind byte, c mvcc.Command) {
	switch kind {
	case proposalTxn:
		e.txn(c.Txn)
	case proposalCompact:
		e.varint(c.Compact)
	case proposalGrant:
		e.varint(c.Grant.ID)
		e.varint(c.Grant.TTLSeconds)
	case proposalRevoke:
		e.varint(c.Revoke)
	case proposalNote:
		e.string(c.Note.Name)
		e.flags(c.Note.Value != nil)
		e.bytes(c.Note.Value)
	case proposalCheckpoint:
		e.uvarint(uint64(len(c.Checkpoint)))
		for _, p := range c.Checkpoint {
			e.varint(p.ID)
			e.varint(p.RemainingMillis)
		}
	}
}

func (d *decoder) command(kind byte) (c mvcc.Command) {
	switch kind {
	case proposalTxn:
		c.Txn = d.txn(1)
	case proposalCompact:
		c.Compact = d.varint()
	case proposalGrant:
		c.Grant = &mvcc.LeaseGrant{ID: d.varint(), TTLSeconds: d.varint()}
	case proposalRevoke:
		if c.Revoke = d.varint(); c.Revoke == 0 {
			d.fail()
		}
	case proposalCheckpoint:
		c.Checkpoint = make([]mvcc.LeaseCheckpoint, d.count())
		for i := range c.Checkpoint {
			c.Checkpoint[i] = mvcc.LeaseCheckpoint{ID: d.varint(), RemainingMillis: d.varint()}
		}
	case proposalNote:
		c.Note = d.note()
	default:
		d.fail()
	}
	return c
}

func (d *decoder) note() *mvcc.Note {
	n := &mvcc.Note{Name: d.string()}
	there := d.flags(1)[0]
	n.Value = d.bytes()
	switch {
	case !there && n.Value != nil:
		d.fail()
	case there && n.Value == nil:
		n.Value = []byte{}
	}
	return n
}
