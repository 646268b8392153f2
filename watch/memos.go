package watch

import "sync"

// A large object, a definition of a custom resource for example, takes several times its bytes in the store when it is
// decoded, and is written more often than it is read. Between two sweeps hundreds of them may come by. So of large
// objects no more remember anything at a time than keptLargeBytes; all others wait for the sweep.
const (
	largeBytes     = 16 << 10 // as stored
	keptLargeBytes = 4 << 20
)

// Memos bounds what large objects remember. The zero value is ready; a nil one bounds nothing.
type Memos struct {
	mu    sync.Mutex // guards what follows; an Object's mu is held when it is taken, and tried, never waited for, under it
	queue []*Object  // the next to forget first
	bytes int
}

// note is called when an object has begun to remember what it can compute again. o.mu is held.
func (m *Memos) note(o *Object) {
	if m == nil || len(o.value) < largeBytes {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queue, m.bytes = append(m.queue, o), m.bytes+len(o.value)
	for chances := len(m.queue); chances > 1 && m.bytes > keptLargeBytes; chances-- {
		first := m.queue[0]
		m.queue = m.queue[1:]
		if first == o || first.forget() {
			m.queue = append(m.queue, first) // in use
		} else {
			m.bytes -= len(first.value)
		}
	}
}

// forget lets go of what can be computed again, unless somebody is computing it or has asked since the last time.
func (o *Object) forget() (inUse bool) {
	if o.used.Swap(false) || !o.mu.TryLock() {
		return true
	}
	o.memo = memo{}
	o.mu.Unlock()
	return false
}
