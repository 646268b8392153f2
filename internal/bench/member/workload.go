package member

import (
	"bytes"
	"context"
	"fmt"

	"kontiki/internal/bench/load"
)

// A store under load is filled with FilledKeys keys of 256 bytes. Puts and reads go round them; a
// compare-and-swap has a key of its own for each client.
const (
	FilledKeys = 10_000
	rangeKeys  = 500
)

// Value256 and value1k are what is written.
var (
	Value256 = bytes.Repeat([]byte("v"), 256)
	value1k  = bytes.Repeat([]byte("v"), 1024)
)

// KeyNumber is one of the FilledKeys.
func KeyNumber(n int64) string { return keys[n%FilledKeys] }

// keys are made beforehand: in the own column, what a load does is counted with what the store does.
var keys = func() (keys [FilledKeys]string) {
	for n := range keys {
		keys[n] = fmt.Sprintf("/bench/%06d", n)
	}
	return keys
}()

// Front is a way to a store.
type Front interface {
	Put(ctx context.Context, key string, value []byte) error
	// CAS writes key if its mod revision is still old, and returns the new one.
	CAS(ctx context.Context, key string, value []byte, old int64) (int64, error)
	// Get reads a key, which exists.
	Get(ctx context.Context, key string, serializable bool) error
	// List reads the keys in [key, end), linearizably, which are want.
	List(ctx context.Context, key, end string, want int) error
	// Watch calls event with the value of each put to key, until the context ends. Ready is called when
	// every put from then on will be seen.
	Watch(ctx context.Context, key string, ready func(), event func(value []byte)) error
}

// Fronts are the ways to a store that clients share.
type Fronts []Front

// Of is the one of a client.
func (f Fronts) Of(client int) Front { return f[client%len(f)] }

// newOp makes the calls of a load; run is different for each.
type newOp func(f Fronts, run string, clients int) load.Op

// workloads are the loads, in the order in which they run.
var workloads = []struct {
	name string
	new  newOp
}{
	{"put256", puts(Value256)},
	{"put1k", puts(value1k)},
	{"cas", swaps},
	{"get", gets(false)},
	{"sget", gets(true)},
	{"range500", lists},
}

func puts(value []byte) newOp {
	return func(f Fronts, _ string, _ int) load.Op {
		return func(ctx context.Context, c int, n int64) error { return f.Of(c).Put(ctx, KeyNumber(n), value) }
	}
}

func swaps(f Fronts, run string, clients int) load.Op {
	keys, revisions := make([]string, clients), make([]int64, clients)
	for c := range keys {
		keys[c] = fmt.Sprintf("/cas/%s/%d", run, c)
	}
	return func(ctx context.Context, c int, _ int64) (err error) {
		revisions[c], err = f.Of(c).CAS(ctx, keys[c], Value256, revisions[c])
		return err
	}
}

func gets(serializable bool) newOp {
	return func(f Fronts, _ string, _ int) load.Op {
		return func(ctx context.Context, c int, n int64) error {
			return f.Of(c).Get(ctx, KeyNumber(n), serializable)
		}
	}
}

func lists(f Fronts, _ string, _ int) load.Op {
	return func(ctx context.Context, c int, n int64) error {
		first := n * rangeKeys % (FilledKeys - rangeKeys)
		return f.Of(c).List(ctx, KeyNumber(first), KeyNumber(first+rangeKeys), rangeKeys)
	}
}

// Workloads are the names of the loads, in the order in which they run.
func Workloads() (list []string) {
	for _, w := range workloads {
		list = append(list, w.name)
	}
	return list
}

// Load has clients do what a request says.
func Load(ctx context.Context, f Fronts, r Request) (load.Measured, error) {
	for _, w := range workloads {
		if w.name == r.Workload {
			return load.Run(ctx, r.Clients, r.Each, w.new(f, r.Run, r.Clients))
		}
	}
	return load.Measured{}, fmt.Errorf("no load %q", r.Workload)
}
