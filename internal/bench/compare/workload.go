package compare

import (
	"bytes"
	"context"
	"fmt"

	"kontiki/internal/bench/load"
)

// A store under load is filled with filledKeys keys of 256 bytes. Puts and reads go round them; a
// compare-and-swap has a key of its own for each client.
const (
	filledKeys = 10_000
	rangeKeys  = 500
)

var (
	value256 = bytes.Repeat([]byte("v"), 256)
	value1k  = bytes.Repeat([]byte("v"), 1024)
)

func keyNumber(n int64) string { return fmt.Sprintf("/bench/%06d", n%filledKeys) }

// front is a way to a store.
type front interface {
	put(ctx context.Context, key string, value []byte) error
	// cas writes key if its mod revision is still old, and returns the new one.
	cas(ctx context.Context, key string, value []byte, old int64) (int64, error)
	// get reads a key, which exists.
	get(ctx context.Context, key string, serializable bool) error
	// list reads the keys in [key, end), linearizably, which are want.
	list(ctx context.Context, key, end string, want int) error
	// watch calls event with the value of each put to key, until the context ends. Ready is called when
	// every put from then on will be seen.
	watch(ctx context.Context, key string, ready func(), event func(value []byte)) error
}

// fronts are the ways to a store that clients share.
type fronts []front

// of is the one of a client.
func (f fronts) of(client int) front { return f[client%len(f)] }

// newOp makes the calls of a load; run is different for each.
type newOp func(f fronts, run string, clients int) load.Op

// Workloads in the order in which they run.
var workloads = []struct {
	name string
	new  newOp
}{
	{"put256", puts(value256)},
	{"put1k", puts(value1k)},
	{"cas", swaps},
	{"get", gets(false)},
	{"sget", gets(true)},
	{"range500", lists},
}

func puts(value []byte) newOp {
	return func(f fronts, _ string, _ int) load.Op {
		return func(ctx context.Context, c int, n int64) error { return f.of(c).put(ctx, keyNumber(n), value) }
	}
}

func swaps(f fronts, run string, clients int) load.Op {
	revisions := make([]int64, clients)
	return func(ctx context.Context, c int, _ int64) (err error) {
		revisions[c], err = f.of(c).cas(ctx, fmt.Sprintf("/cas/%s/%d", run, c), value256, revisions[c])
		return err
	}
}

func gets(serializable bool) newOp {
	return func(f fronts, _ string, _ int) load.Op {
		return func(ctx context.Context, c int, n int64) error {
			return f.of(c).get(ctx, keyNumber(n), serializable)
		}
	}
}

func lists(f fronts, _ string, _ int) load.Op {
	return func(ctx context.Context, c int, n int64) error {
		first := n * rangeKeys % (filledKeys - rangeKeys)
		return f.of(c).list(ctx, keyNumber(first), keyNumber(first+rangeKeys), rangeKeys)
	}
}

// findWorkload returns the load of that name; false if there is none.
func findWorkload(name string) (newOp, bool) {
	for _, w := range workloads {
		if w.name == name {
			return w.new, true
		}
	}
	return nil, false
}
