package simulation

import (
	"math/rand/v2"
	"sync"
	"time"
)

// dice is a source of chance that several goroutines share. Each part of a simulation has its own, so
// that what one draws does not change the luck of the others.
type dice struct {
	mu  sync.Mutex // guards rng
	rng *rand.Rand
}

// newDice returns the dice of one part of the simulation with a seed.
func newDice(seed uint64, part string) *dice {
	h := uint64(14695981039346656037) // FNV-1a
	for _, c := range []byte(part) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return &dice{rng: rand.New(rand.NewPCG(seed, h))}
}

// upTo draws from [0, d).
func (d *dice) upTo(t time.Duration) time.Duration {
	if t <= 0 {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Duration(d.rng.Int64N(int64(t)))
}

func (d *dice) between(low, high time.Duration) time.Duration { return low + d.upTo(high-low) }

// below draws from [0, n).
func (d *dice) below(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.IntN(n)
}

func (d *dice) happens(p float64) bool {
	if p <= 0 {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.Float64() < p
}

// pick draws an element.
func pick[T any](d *dice, from ...T) T { return from[d.below(len(from))] }

// weighted draws an index, as often as its weight says.
func (d *dice) weighted(weights ...int) int {
	sum := 0
	for _, w := range weights {
		sum += w
	}
	n := d.below(sum)
	for i, w := range weights {
		if n -= w; n < 0 {
			return i
		}
	}
	panic("unreachable")
}
