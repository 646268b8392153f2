package wal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// model is what a log should be: its entries, without gaps.
type model []raft.Log

func (m model) first() uint64 {
	if len(m) == 0 {
		return 0
	}
	return m[0].Index
}

func (m model) last() uint64 {
	if len(m) == 0 {
		return 0
	}
	return m[len(m)-1].Index
}

// machine runs a log and its model side by side.
type machine struct {
	dir   *memDirectory
	log   *Log
	model model
	// maybe are what else may be found when the log is opened again: the outcomes of operations that
	// failed since the last one that did not.
	maybe []model
	term  uint64
	seed  uint64
}

var modelOptions = Options{SegmentBytes: minSegmentBytes, prepareInline: true}

func (m *machine) rng(t *rapid.T) *rand.Rand {
	return rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
}

func (m *machine) entries(t *rapid.T, first uint64) []*raft.Log {
	if rapid.IntRange(0, 3).Draw(t, "newTerm") == 0 {
		m.term++
	}
	n := rapid.IntRange(1, 6).Draw(t, "entries")
	entries := make([]*raft.Log, n)
	for i := range entries {
		size := rapid.SampledFrom([]int{0, 1, 8, 100, 456, 2000, 5000}).Draw(t, "size")
		e := &raft.Log{Index: first + uint64(i), Term: m.term, Type: raft.LogType(rapid.IntRange(0, 5).Draw(t, "type"))}
		m.seed++
		for range size {
			e.Data = append(e.Data, byte(m.seed))
		}
		entries[i] = e
	}
	return entries
}

// mutate runs an operation that makes the model into one of afters, the last of them if all goes well.
func (m *machine) mutate(t *rapid.T, op func() error, afters ...model) {
	if err := op(); err != nil {
		require.False(t, errors.Is(err, ErrCorrupt) || errors.Is(err, ErrGap) || errors.Is(err, ErrMiddle), "%v", err)
		m.maybe = append(m.maybe, afters...)
		return
	}
	m.model, m.maybe = afters[len(afters)-1], nil
}

func (m *machine) append(t *rapid.T) {
	first := m.model.last() + 1
	if len(m.model) == 0 {
		first = rapid.Uint64Range(1, 200).Draw(t, "first")
	}
	entries := m.entries(t, first)
	var afters []model
	after := slices.Clone(m.model)
	for _, e := range entries {
		after = append(slices.Clone(after), *e)
		afters = append(afters, after)
	}
	m.mutate(t, func() error { return m.log.StoreLogs(entries) }, afters...)
}

func (m *machine) deletePrefix(t *rapid.T) {
	if len(m.model) == 0 {
		return
	}
	n := rapid.IntRange(1, len(m.model)).Draw(t, "n")
	first := m.model.first()
	m.mutate(t, func() error { return m.log.DeleteRange(first, first+uint64(n)-1) }, slices.Clone(m.model[n:]))
}

func (m *machine) deleteSuffix(t *rapid.T) {
	if len(m.model) == 0 {
		return
	}
	n := rapid.IntRange(1, len(m.model)).Draw(t, "n")
	last := m.model.last()
	m.mutate(t, func() error { return m.log.DeleteRange(last-uint64(n)+1, last) }, slices.Clone(m.model[:len(m.model)-n]))
}

func (m *machine) wrongIndex(t *rapid.T) {
	if len(m.model) == 0 {
		return
	}
	index := rapid.SampledFrom([]uint64{m.model.first(), m.model.last(), m.model.last() + 2}).Draw(t, "index")
	if index == 0 || m.dir.off {
		return
	}
	require.ErrorIs(t, m.log.StoreLogs([]*raft.Log{{Index: index}}), ErrGap)
}

// open opens what a crash left, and checks that it is one of the logs that it may be. Open itself may
// fail and be repeated: it must not make anything worse.
func (m *machine) open(t *rapid.T, dir *memDirectory) {
	if after := rapid.IntRange(0, 12).Draw(t, "cutInOpen"); after < 4 {
		dir.cutAt = dir.ops + 1 + after
		if l, err := OpenIn(dir, modelOptions); err == nil {
			_ = l.Close()
		} else {
			require.NotErrorIs(t, err, ErrCorrupt)
		}
		dir = dir.powerCut(m.rng(t))
	}
	l, err := OpenIn(dir, modelOptions)
	if errors.Is(err, ErrCorrupt) || !dir.off {
		require.NoError(t, err)
	}
	m.dir, m.log = dir, l
	found := m.found(t)
	for _, allowed := range append([]model{m.model}, m.maybe...) {
		if same(allowed, found) {
			m.model, m.maybe = found, nil
			return
		}
	}
	require.FailNow(t, "lost or made up", "found %d to %d, want %d to %d or one of %d others",
		found.first(), found.last(), m.model.first(), m.model.last(), len(m.maybe))
}

func same(a, b model) bool {
	return slices.EqualFunc(a, b, func(x, y raft.Log) bool {
		return x.Index == y.Index && x.Term == y.Term && x.Type == y.Type && string(x.Data) == string(y.Data)
	})
}

// found reads the whole log.
func (m *machine) found(t *rapid.T) model {
	first, err := m.log.FirstIndex()
	require.NoError(t, err)
	last, err := m.log.LastIndex()
	require.NoError(t, err)
	var found model
	for i := first; i != 0 && i <= last; i++ {
		var e raft.Log
		require.NoError(t, m.log.GetLog(i, &e))
		found = append(found, e)
	}
	var e raft.Log
	require.ErrorIs(t, m.log.GetLog(last+1, &e), raft.ErrLogNotFound)
	require.ErrorIs(t, m.log.GetLog(first-1, &e), raft.ErrLogNotFound)
	return found
}

// check compares the log with the model, unless the power is off.
func (m *machine) check(t *rapid.T) {
	if m.dir.off {
		return
	}
	if found := m.found(t); !same(m.model, found) {
		require.FailNow(t, "not as the model", "found %d to %d, want %d to %d", found.first(), found.last(), m.model.first(), m.model.last())
	}
	segments := 0
	for name := range m.dir.names {
		if _, ok := parseSegmentName(name); ok {
			segments++
		}
	}
	require.LessOrEqual(t, segments, m.log.Stats().Segments+1+keptFreed, "files that nothing uses")
}

// TestModel: whatever happens, the log is what the operations that returned nil made it.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{dir: newMemDirectory()}
		l, err := OpenIn(m.dir, modelOptions)
		require.NoError(t, err)
		m.log = l
		t.Repeat(map[string]func(*rapid.T){
			"append":       m.append,
			"append more":  m.append,
			"append most":  m.append,
			"deletePrefix": m.deletePrefix,
			"deleteSuffix": m.deleteSuffix,
			"wrongIndex":   m.wrongIndex,
			"reopen": func(t *rapid.T) {
				if err := m.log.Close(); !m.dir.off {
					require.NoError(t, err)
					m.open(t, m.dir)
				}
			},
			"kill":     func(t *rapid.T) { m.open(t, m.dir.kill()) },
			"powerCut": func(t *rapid.T) { m.open(t, m.dir.powerCut(m.rng(t))) },
			"powerCut soon": func(t *rapid.T) {
				m.dir.cutAt = m.dir.ops + rapid.IntRange(1, 6).Draw(t, "ops")
				for i := 0; i < 10 && !m.dir.off; i++ {
					rapid.SampledFrom([]func(*rapid.T){m.append, m.append, m.deletePrefix, m.deleteSuffix}).Draw(t, "op")(t)
				}
				m.open(t, m.dir.powerCut(m.rng(t)))
			},
			"full disk": func(t *rapid.T) {
				if m.dir.capacity = 0; rapid.Bool().Draw(t, "full") {
					m.dir.capacity = m.dir.used() + rapid.Int64Range(0, minSegmentBytes).Draw(t, "room")
				}
			},
			"failing disk": func(t *rapid.T) {
				ops, fail := 0, rapid.IntRange(0, 3).Draw(t, "after")
				m.dir.failing = func(bool) error {
					if ops++; ops > fail {
						return fmt.Errorf("write %d: %w", ops, errIO)
					}
					return nil
				}
				m.append(t)
				m.append(t)
				m.dir.failing = nil
			},
			"": m.check,
		})
	})
}
