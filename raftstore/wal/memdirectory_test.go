package wal

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
)

const sectorBytes = 512

var (
	errPowerCut = errors.New("the power was cut")
	errIO       = syscall.EIO
)

// memDirectory is a file system in memory that forgets what was not synced: powerCut keeps of each write
// since the last sync any of its sectors, and of the changes to names any of them.
type memDirectory struct {
	mu       sync.Mutex
	names    map[string]*memFile
	durable  map[string]*memFile // names after a power cut, if none of changes survives
	changes  []nameChange
	locked   bool
	capacity int64 // bytes of all files, 0: no limit

	failing func(write bool) error // called for each write and sync, if not nil
	ops     int                    // writes, syncs and changes of names so far
	cutAt   int                    // the power fails in that op, 0: never
	off     bool
}

type nameChange struct {
	from, to string // from "": create; to "": remove
	file     *memFile
}

type memFile struct {
	dir     *memDirectory
	data    []byte
	disk    []byte
	pending []memWrite
}

type memWrite struct {
	at int64
	b  []byte
}

func newMemDirectory() *memDirectory {
	return &memDirectory{names: map[string]*memFile{}, durable: map[string]*memFile{}}
}

// op counts an operation. In the one in which the power fails, it is as if the operation had begun.
func (d *memDirectory) op() (cut bool, err error) {
	if d.off {
		return false, errPowerCut
	}
	d.ops++
	d.off = d.ops == d.cutAt
	return d.off, nil
}

func (d *memDirectory) Lock() (io.Closer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.locked {
		return nil, ErrLocked
	}
	d.locked = true
	return closerFunc(func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.locked = false
		return nil
	}), nil
}

type closerFunc func() error

func (f closerFunc) Close() error { return f() }

func (d *memDirectory) List() ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.names)), nil
}

func (d *memDirectory) Open(name string) (File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, ok := d.names[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return f, nil
}

func (d *memDirectory) change(c nameChange) error {
	cut, err := d.op()
	if err != nil {
		return err
	}
	d.names = c.applyTo(d.names)
	d.changes = append(d.changes, c)
	if cut {
		return errPowerCut
	}
	return nil
}

func (c nameChange) applyTo(names map[string]*memFile) map[string]*memFile {
	names = maps.Clone(names)
	if c.from != "" {
		if names[c.from] != c.file {
			return names // what it depends on did not survive
		}
		delete(names, c.from)
	}
	if c.to != "" {
		names[c.to] = c.file
	}
	return names
}

func (d *memDirectory) Create(name string) (File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.names[name]; ok {
		return nil, fs.ErrExist
	}
	f := &memFile{dir: d}
	return f, d.change(nameChange{to: name, file: f})
}

func (d *memDirectory) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.names[to]; ok || d.names[from] == nil {
		panic("rename of nothing, or onto a file")
	}
	return d.change(nameChange{from: from, to: to, file: d.names[from]})
}

func (d *memDirectory) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[name] == nil {
		return fs.ErrNotExist
	}
	return d.change(nameChange{from: name, file: d.names[name]})
}

func (d *memDirectory) Sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if cut, err := d.op(); err != nil || cut {
		return errPowerCut
	}
	d.durable, d.changes = maps.Clone(d.names), nil
	return nil
}

func (f *memFile) ReadAt(b []byte, at int64) (int, error) {
	f.dir.mu.Lock()
	defer f.dir.mu.Unlock()
	if f.dir.off {
		return 0, errPowerCut
	}
	if at >= int64(len(f.data)) {
		return 0, io.EOF
	}
	n := copy(b, f.data[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(b []byte, at int64) (int, error) {
	d := f.dir
	d.mu.Lock()
	defer d.mu.Unlock()
	cut, err := d.op()
	if err != nil {
		return 0, err
	}
	if d.failing != nil {
		if err := d.failing(true); err != nil {
			b = b[:len(b)/2] // half of it may be on disk
			f.write(b, at)
			return len(b), err
		}
	}
	if grow := at + int64(len(b)) - int64(len(f.data)); d.capacity > 0 && grow > 0 && d.used()+grow > d.capacity {
		return 0, syscall.ENOSPC
	}
	f.write(b, at)
	if cut {
		return 0, errPowerCut
	}
	return len(b), nil
}

func (f *memFile) write(b []byte, at int64) {
	f.data = put(f.data, b, at)
	f.pending = append(f.pending, memWrite{at, slices.Clone(b)})
}

func put(data, b []byte, at int64) []byte {
	if n := at + int64(len(b)); n > int64(len(data)) {
		data = append(data, make([]byte, n-int64(len(data)))...)
	}
	copy(data[at:], b)
	return data
}

func (d *memDirectory) used() (n int64) {
	for _, f := range d.names {
		n += int64(len(f.data))
	}
	return n
}

func (f *memFile) Size() (int64, error) {
	f.dir.mu.Lock()
	defer f.dir.mu.Unlock()
	return int64(len(f.data)), nil
}

func (f *memFile) Sync() error {
	d := f.dir
	d.mu.Lock()
	defer d.mu.Unlock()
	if cut, err := d.op(); err != nil || cut {
		return errPowerCut
	}
	if d.failing != nil {
		if err := d.failing(false); err != nil {
			return err // what is pending may be on disk or not
		}
	}
	for _, w := range f.pending {
		f.disk = put(f.disk, w.b, w.at)
	}
	f.pending = nil
	return nil
}

func (f *memFile) Close() error { return nil }

// powerCut returns what is found after the power came back.
func (d *memDirectory) powerCut(rng *rand.Rand) *memDirectory {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.off = true
	names := d.durable
	for _, c := range d.changes {
		if rng.IntN(2) == 0 {
			names = c.applyTo(names)
		}
	}
	after := newMemDirectory()
	after.capacity = d.capacity
	for _, name := range slices.Sorted(maps.Keys(names)) { // in order: a seed repeats
		data := names[name].afterPowerCut(rng)
		after.names[name] = &memFile{dir: after, data: data, disk: slices.Clone(data)}
	}
	after.durable = maps.Clone(after.names)
	return after
}

func (f *memFile) afterPowerCut(rng *rand.Rand) []byte {
	data, keep := slices.Clone(f.disk), rng.IntN(4)
	for _, w := range f.pending {
		for from := int64(0); from < int64(len(w.b)); {
			n := min(sectorBytes-(w.at+from)%sectorBytes, int64(len(w.b))-from)
			if keep == 3 || keep != 0 && rng.IntN(2) == 0 {
				data = put(data, w.b[from:from+n], w.at+from)
			}
			from += n
		}
	}
	return data
}

// kill returns what the next process finds if this one is killed: everything, synced or not.
func (d *memDirectory) kill() *memDirectory {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.off = true
	after := &memDirectory{capacity: d.capacity, changes: d.changes}
	moved := map[*memFile]*memFile{}
	move := func(f *memFile) *memFile {
		if moved[f] == nil {
			moved[f] = &memFile{dir: after, data: slices.Clone(f.data), disk: slices.Clone(f.disk), pending: slices.Clone(f.pending)}
		}
		return moved[f]
	}
	after.names, after.durable = map[string]*memFile{}, map[string]*memFile{}
	for name, f := range d.names {
		after.names[name] = move(f)
	}
	for name, f := range d.durable {
		after.durable[name] = move(f)
	}
	after.changes = nil
	for _, c := range d.changes {
		after.changes = append(after.changes, nameChange{c.from, c.to, move(c.file)})
	}
	return after
}

// clone copies files and names, all durable.
func (d *memDirectory) clone() *memDirectory {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := newMemDirectory()
	for name, f := range d.names {
		c.names[name] = &memFile{dir: c, data: slices.Clone(f.data), disk: slices.Clone(f.data)}
	}
	c.durable = maps.Clone(c.names)
	return c
}
