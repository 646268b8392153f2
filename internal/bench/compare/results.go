package compare

import (
	"slices"

	"kontiki/internal/bench/load"
)

// figures is what one load of one round gave, or its median.
type figures struct {
	load.Measured
	usage
	value float64 // what the load's name says: seconds, elections
}

// cpuPerCall is in seconds.
func (f figures) cpuPerCall() float64 { return f.cpuSeconds / float64(max(f.Count, 1)) }

// cell is a place in the results.
type cell struct {
	column, load string
	clients      int
}

type results map[cell][]figures

func (r results) add(c Column, load string, clients int, f figures) {
	at := cell{c.Name, load, clients}
	r[at] = append(r[at], f)
}

// median of one figure over the rounds; false if it was not measured.
func (r results) median(at cell, of func(figures) float64) (float64, bool) {
	var values []float64
	for _, f := range r[at] {
		values = append(values, of(f))
	}
	if len(values) == 0 {
		return 0, false
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2, true
}
