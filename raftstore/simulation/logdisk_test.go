package simulation

import (
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"kontiki/raftstore/wal"
)

// logDisk is the disk under a raft log (raftstore/wal), in memory. It knows the difference between what was
// written and what is durable, so a log can be lost in the middle of a write.
//
// What a process does to its disk is a list of actions. Those that came before the end of a write that was
// acknowledged are settled. A crash falls between any two of the others, or into one.
type logDisk struct {
	mu      sync.Mutex // guards everything below
	now     *volume    // what the process sees
	settled *volume    // what no crash undoes
	open    []action   // what was done since
	before  int        // how many actions were settled
}

func newLogDisk() *logDisk { return &logDisk{now: newVolume(), settled: newVolume()} }

// action is one change. Which one it is, its fields say: a write (data), the sync of a file (file alone), a new
// name (to), an old one that goes (from), the sync of the directory (nothing).
type action struct {
	file     int
	data     []byte
	at       int64
	from, to string
}

// do is what every change goes through.
func (d *logDisk) do(a action) {
	d.now.do(a)
	d.open = append(d.open, a)
}

// mark is a moment, for settle: how many actions there were.
func (d *logDisk) mark() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.before + len(d.open)
}

// settle says that all before a moment came before something that was acknowledged.
func (d *logDisk) settle(mark int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.before < mark {
		d.settled.do(d.open[0])
		d.open = d.open[1:]
		d.before++
	}
}

// crash returns what the next process finds. After a power cut, of what was not synced any sector may be missing.
func (d *logDisk) crash(dice *dice, powerCut bool) *logDisk {
	d.mu.Lock()
	defer d.mu.Unlock()
	v := d.settled.clone()
	n := dice.below(len(d.open) + 1)
	for _, a := range d.open[:n] {
		v.do(a)
	}
	if n < len(d.open) && len(d.open[n].data) > 0 { // torn
		a := d.open[n]
		a.data = a.data[:dice.below(len(a.data)+1)/sectorBytes*sectorBytes]
		v.do(a)
	}
	if powerCut {
		v.loseUnsynced(dice)
	}
	return &logDisk{now: v, settled: v.clone()}
}

const sectorBytes = 512

// volume is the content of a disk: files by number, and their names.
type volume struct {
	files   map[int]*logContent
	names   map[string]int
	durable map[string]int // the names as of the last sync of the directory
}

// logContent is a file: what is read, what is durable, and the writes that make the difference.
type logContent struct {
	data, synced []byte
	unsynced     []action
}

func newVolume() *volume {
	return &volume{files: map[int]*logContent{}, names: map[string]int{}, durable: map[string]int{}}
}

func (v *volume) clone() *volume {
	c := &volume{files: map[int]*logContent{}, names: maps.Clone(v.names), durable: maps.Clone(v.durable)}
	for n, f := range v.files {
		c.files[n] = &logContent{slices.Clone(f.data), slices.Clone(f.synced), slices.Clone(f.unsynced)}
	}
	return c
}

func (v *volume) do(a action) {
	f := v.files[a.file]
	switch {
	case a.to != "" || a.from != "":
		if a.from != "" {
			delete(v.names, a.from)
		}
		if a.to != "" {
			v.names[a.to] = a.file
		}
		if f == nil {
			v.files[a.file] = &logContent{}
		}
	case a.file == 0:
		v.durable = maps.Clone(v.names)
		v.sweep()
	case a.data != nil:
		f.data = overwrite(f.data, a)
		f.unsynced = append(f.unsynced, a)
	default:
		for _, w := range f.unsynced {
			f.synced = overwrite(f.synced, w)
		}
		f.unsynced = nil
	}
}

// sweep frees the files without a name.
func (v *volume) sweep() {
	named := map[int]bool{}
	for _, n := range v.durable {
		named[n] = true
	}
	maps.DeleteFunc(v.files, func(n int, _ *logContent) bool { return !named[n] })
}

func overwrite(b []byte, a action) []byte {
	if end := int(a.at) + len(a.data); end > len(b) {
		b = append(b, make([]byte, end-len(b))...)
	}
	copy(b[a.at:], a.data)
	return b
}

// loseUnsynced is a power cut: the names are those of the last sync, or of now; of each write that was not
// synced, any sectors survive.
func (v *volume) loseUnsynced(dice *dice) {
	if dice.happens(0.5) {
		v.names = v.durable
	}
	v.durable = maps.Clone(v.names)
	for _, n := range slices.Sorted(maps.Keys(v.files)) {
		f := v.files[n]
		for _, w := range f.unsynced {
			for from := 0; from < len(w.data); from += sectorBytes {
				if dice.happens(0.5) {
					f.synced = overwrite(f.synced, action{at: w.at + int64(from), data: w.data[from:min(from+sectorBytes, len(w.data))]})
				}
			}
		}
		f.data, f.unsynced = slices.Clone(f.synced), nil
	}
}

var _ wal.Directory = (*logDisk)(nil)

// Lock implements wal.Directory. Each process has a disk of its own, a copy of that of the one before.
func (d *logDisk) Lock() (io.Closer, error) { return io.NopCloser(nil), nil }

// List implements wal.Directory.
func (d *logDisk) List() ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.now.names)), nil
}

// Open implements wal.Directory.
func (d *logDisk) Open(name string) (wal.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, ok := d.now.names[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return logFile{d, n}, nil
}

// Create implements wal.Directory.
func (d *logDisk) Create(name string) (wal.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.now.names[name]; ok {
		return nil, fs.ErrExist
	}
	n := 1
	for d.now.files[n] != nil {
		n++
	}
	d.do(action{file: n, to: name})
	return logFile{d, n}, nil
}

// Rename implements wal.Directory.
func (d *logDisk) Rename(from, to string) error { return d.rename(from, to) }

// Remove implements wal.Directory.
func (d *logDisk) Remove(name string) error { return d.rename(name, "") }

func (d *logDisk) rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, ok := d.now.names[from]
	if !ok {
		return fs.ErrNotExist
	}
	d.do(action{file: n, from: from, to: to})
	return nil
}

// Sync implements wal.Directory.
func (d *logDisk) Sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.do(action{})
	return nil
}

// logFile is an open file of a logDisk.
type logFile struct {
	disk *logDisk
	n    int
}

// ReadAt implements wal.File.
func (f logFile) ReadAt(b []byte, at int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	data := f.disk.now.files[f.n].data
	if at >= int64(len(data)) {
		return 0, io.EOF
	}
	n := copy(b, data[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt implements wal.File.
func (f logFile) WriteAt(b []byte, at int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.disk.do(action{file: f.n, data: slices.Clone(b), at: at})
	return len(b), nil
}

// Size implements wal.File.
func (f logFile) Size() (int64, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	return int64(len(f.disk.now.files[f.n].data)), nil
}

// Sync implements wal.File.
func (f logFile) Sync() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.disk.do(action{file: f.n})
	return nil
}

// Close implements wal.File.
func (logFile) Close() error { return nil }
