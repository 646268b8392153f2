package raftstore

import (
	"encoding/binary"
	"sync"
)

// The primitives that entries, requests and results are made of; docs/formats/raft-entry.md lists them.

// encoder appends to b.
type encoder struct {
	b []byte
}

// encoders are used again.
var encoders = sync.Pool{New: func() any { return &encoder{} }}

// maxRecycledBytes is how large a buffer is kept for the next use.
const maxRecycledBytes = 64 << 10

// recycle gives the encoder back. Nobody may have its bytes any more.
func (e *encoder) recycle() {
	if cap(e.b) <= maxRecycledBytes {
		e.b = e.b[:0]
		encoders.Put(e)
	}
}

func (e *encoder) byte(v byte)      { e.b = append(e.b, v) }
func (e *encoder) uvarint(v uint64) { e.b = binary.AppendUvarint(e.b, v) }
func (e *encoder) varint(v int64)   { e.b = binary.AppendVarint(e.b, v) }
func (e *encoder) string(v string)  { e.uvarint(uint64(len(v))); e.b = append(e.b, v...) }
func (e *encoder) bytes(v []byte)   { e.uvarint(uint64(len(v))); e.b = append(e.b, v...) }

// flags packs booleans into a byte, the first into the lowest bit.
func (e *encoder) flags(vs ...bool) {
	var b byte
	for i, v := range vs {
		if v {
			b |= 1 << i
		}
	}
	e.byte(b)
}

// decoder takes from the front of b. After the first failure, bad is set and everything is zero.
// Byte slices that it returns point into b.
type decoder struct {
	b         []byte
	bad       bool
	allotment *allotment // for what is decoded; may be nil
}

func (d *decoder) fail() {
	d.bad = true
	d.b = nil
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail()
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

// bytes returns nil for an empty slice.
func (d *decoder) bytes() []byte {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.fail()
	}
	if d.bad || n == 0 {
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) string() string { return string(d.bytes()) }

// count reads the length of a list whose elements take at least one byte each, so that malformed
// bytes cannot make us allocate more than they are long.
func (d *decoder) count() int {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.fail()
		return 0
	}
	return int(n)
}

// flags unpacks n booleans; bits above must be zero.
func (d *decoder) flags(n int) [8]bool {
	b := d.byte()
	if b>>n != 0 {
		d.fail()
	}
	var vs [8]bool
	for i := range n {
		vs[i] = b&(1<<i) != 0
	}
	return vs
}

// end reports whether everything was well formed and nothing is left.
func (d *decoder) end() error {
	if d.bad || len(d.b) > 0 {
		return ErrFormat
	}
	return nil
}
