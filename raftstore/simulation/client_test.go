package simulation

import (
	"context"
	"fmt"
	"time"

	"kontiki/mvcc"
)

// client does one operation after the other, each on whichever member it likes.
type client struct {
	s    *simulation
	name string
	dice *dice
	n    int // operations so far
}

const (
	registers = 5 // keys r/0, r/1, …, each of which changes on its own now and then
	think     = 120 * time.Millisecond
)

func register(i int) []byte { return fmt.Appendf(nil, "r/%d", i) }

func (c *client) run(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(c.dice.upTo(think))
		if p := c.s.cluster.any(c.dice); p != nil {
			c.step(ctx, p)
		}
	}
}

func (c *client) step(ctx context.Context, p *process) {
	ctx, cancel := context.WithTimeout(ctx, pick(c.dice, 100*time.Millisecond, time.Second, 3*time.Second))
	defer cancel()
	i, j := c.dice.below(registers), c.dice.below(registers)
	switch c.dice.weighted(5, 6, 5, 2, 2, 4, 1, 1, 3, 2) {
	case 0:
		c.read(ctx, p, mvcc.RangeRequest{Key: register(i)}, false)
	case 1:
		c.txn(ctx, p, func(id []byte) *mvcc.TxnRequest {
			return &mvcc.TxnRequest{Then: []mvcc.Op{put(register(i), id, c.dice.happens(0.5))}}
		})
	case 2:
		c.compareAndSwap(ctx, p, c.dice.happens(0.3), i)
	case 3:
		c.compareAndSwap(ctx, p, c.dice.happens(0.3), i, j)
	case 4:
		c.delete(ctx, p, register(i), nil)
	case 5:
		c.pair(ctx, p)
	case 6:
		c.delete(ctx, p, []byte("r/1"), []byte("r/3"))
	case 7:
		c.txn(ctx, p, func([]byte) *mvcc.TxnRequest {
			return &mvcc.TxnRequest{Then: []mvcc.Op{get(register(i)), get([]byte("p/x"), []byte("p/z")...)}}
		})
	case 8:
		c.readLocally(p)
	case 9:
		c.read(ctx, p, mvcc.RangeRequest{Key: []byte("r/"), End: []byte("r0")}, false)
	}
}

// operation names the next operation.
func (c *client) operation() *operation {
	c.n++
	return &operation{id: fmt.Sprintf("%s-%d", c.name, c.n)}
}

func (c *client) read(ctx context.Context, p *process, req mvcc.RangeRequest, local bool) *operation {
	o := c.operation()
	o.read, o.local = &req, local
	return c.s.record.do(ctx, p, o)
}

func (c *client) txn(ctx context.Context, p *process, build func(id []byte) *mvcc.TxnRequest) *operation {
	o := c.operation()
	o.txn = build([]byte(o.id))
	return c.s.record.do(ctx, p, o)
}

// compareAndSwap reads registers and writes them if they are still the same.
func (c *client) compareAndSwap(ctx context.Context, p *process, local bool, registers ...int) {
	if len(registers) == 2 && registers[0] == registers[1] {
		registers = registers[:1]
	}
	req := &mvcc.TxnRequest{}
	for _, i := range registers {
		o := c.read(ctx, p, mvcc.RangeRequest{Key: register(i)}, local)
		if o.outcome != acknowledged {
			return
		}
		req.Compare = append(req.Compare, c.unchanged(register(i), o.readRes.KVs))
		req.Else = append(req.Else, get(register(i)))
	}
	if c.dice.happens(0.5) {
		p = c.s.cluster.any(c.dice)
	}
	if p == nil {
		return
	}
	c.txn(ctx, p, func(id []byte) *mvcc.TxnRequest {
		for _, i := range registers {
			req.Then = append(req.Then, put(register(i), id, true))
		}
		return req
	})
}

// unchanged is a compare that holds as long as the key is what it was found to be.
func (c *client) unchanged(key []byte, found []mvcc.KeyValue) mvcc.Compare {
	if len(found) == 0 {
		return mvcc.Compare{Key: key, Target: mvcc.CompareCreateRevision, Result: mvcc.Equal}
	}
	if c.dice.happens(0.5) {
		return mvcc.Compare{Key: key, Target: mvcc.CompareValue, Result: mvcc.Equal, Value: found[0].Value}
	}
	return mvcc.Compare{Key: key, Target: mvcc.CompareModRevision, Result: mvcc.Equal, Number: found[0].ModRevision}
}

// delete deletes keys, and leaves a note in the client's journal, which identifies it in history.
func (c *client) delete(ctx context.Context, p *process, key, end []byte) {
	c.txn(ctx, p, func(id []byte) *mvcc.TxnRequest {
		return &mvcc.TxnRequest{Then: []mvcc.Op{
			{Delete: &mvcc.DeleteRequest{Key: key, End: end, PrevKV: true}}, put([]byte("j/"+c.name), id, false),
		}}
	})
}

// pair works on two keys that always have the same value.
func (c *client) pair(ctx context.Context, p *process) {
	o := c.read(ctx, p, mvcc.RangeRequest{Key: []byte("p/x"), End: []byte("p/z")}, false)
	if o.outcome != acknowledged || c.dice.happens(0.3) {
		return
	}
	c.txn(ctx, p, func(id []byte) *mvcc.TxnRequest {
		return &mvcc.TxnRequest{
			Compare: []mvcc.Compare{c.unchanged([]byte("p/y"), o.readRes.KVs[min(1, len(o.readRes.KVs)):])},
			Then:    []mvcc.Op{put([]byte("p/x"), id, false), put([]byte("p/y"), id, false)},
			Else:    []mvcc.Op{get([]byte("p/x"), []byte("p/z")...)},
		}
	})
}

// readLocally reads what a member has, perhaps at an old revision.
func (c *client) readLocally(p *process) {
	req := mvcc.RangeRequest{Key: []byte("a"), End: []byte("z")}
	if c.dice.happens(0.5) {
		req.Revision = 1 + int64(c.dice.below(int(p.member.LocalRevision())+1))
	}
	c.read(context.Background(), p, req, true)
}

func put(key, value []byte, prev bool) mvcc.Op {
	return mvcc.Op{Put: &mvcc.PutRequest{Key: key, Value: value, PrevKV: prev}}
}

func get(key []byte, end ...byte) mvcc.Op {
	return mvcc.Op{Range: &mvcc.RangeRequest{Key: key, End: end}}
}
