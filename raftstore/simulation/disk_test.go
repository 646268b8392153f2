package simulation

import (
	"sync"
	"time"
)

// disk is how slow the disk of a member is.
type disk struct {
	dice *dice

	mu    sync.Mutex // guards everything below
	slow  time.Duration
	stuck time.Time // until when nothing is written
}

// onDisk is a raftstore.Config.OnDisk: a write takes its time, before and after. A process that is killed after
// the write and before it hears of it may have left all of it, or some, or nothing.
func (p *process) onDisk(write func() error) error {
	p.gate.pass()
	p.disk.delay()
	err := write()
	if p.log != nil {
		defer p.log.settle(p.log.mark())
	}
	p.disk.delay()
	p.gate.pass()
	return err
}

func (d *disk) delay() {
	d.mu.Lock()
	pause := d.slow
	stuck := time.Until(d.stuck)
	d.mu.Unlock()
	if pause = max(stuck, d.dice.upTo(pause)); pause > 0 {
		time.Sleep(pause)
	}
}

func (d *disk) set(slow time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slow = slow
}

func (d *disk) stick(pause time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stuck = time.Now().Add(pause)
}
