package faults

import (
	"fmt"
	"sort"
	"strings"
)

// check compares what the writers saw with the history that the watches told; the first event is that of firstRevision.
// It returns what is wrong, at most a few lines of it.
func check(h *history, events []event) []string {
	c := checker{events: events, places: map[string][]int64{}, changes: map[string][]int64{}}
	c.index()
	c.versions()
	for _, w := range h.writes {
		c.write(w)
	}
	for _, r := range h.reads {
		c.read(r)
	}
	return c.wrong
}

type checker struct {
	events  []event
	places  map[string][]int64 // key and value to the revisions where it was put
	changes map[string][]int64 // key to the revisions where it changed
	wrong   []string
}

const maxWrong = 20

func (c *checker) report(format string, args ...any) {
	if len(c.wrong) < maxWrong {
		c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
	}
}

func (c *checker) index() {
	for i, e := range c.events {
		at := firstRevision + int64(i)
		c.places[e.key+"="+e.value] = append(c.places[e.key+"="+e.value], at)
		c.changes[e.key] = append(c.changes[e.key], at)
	}
}

// versions checks that a key's versions go up by one, and a counter with them.
func (c *checker) versions() {
	for key, revisions := range c.changes {
		for i, r := range revisions {
			e, n := c.events[r-firstRevision], i+1
			if e.version != int64(n) {
				c.report("%s has version %d at revision %d, expected %d", key, e.version, r, n)
			}
			if counter := counted(e.value); strings.HasPrefix(key, counterPrefix) && counter != n {
				c.report("%s is %d at revision %d, expected %d", key, counter, r, n)
			}
		}
	}
}

func (c *checker) write(w write) {
	at := c.places[w.key+"="+w.value]
	switch {
	case len(at) > 1:
		c.report("%s=%s was applied %d times, at %v", w.key, w.value, len(at), at)
	case len(at) == 0 && w.outcome == acknowledged:
		c.report("%s=%s was acknowledged at revision %d and is lost", w.key, w.value, w.revision)
	case len(at) == 0:
	case w.outcome == refused:
		c.report("%s=%s was refused and is at revision %d", w.key, w.value, at[0])
	case w.outcome == acknowledged && at[0] != w.revision:
		c.report("%s=%s was acknowledged at revision %d and is at %d", w.key, w.value, w.revision, at[0])
	case at[0] <= w.seen:
		c.report("%s=%s is at revision %d, and %d had been seen before it began", w.key, w.value, at[0], w.seen)
	}
}

// read checks that a read told the newest change of its key up to its revision, and that nothing newer was known before.
func (c *checker) read(r read) {
	changes := c.changes[r.key]
	var newest int64
	if n := sort.Search(len(changes), func(i int) bool { return changes[i] > r.revision }); n > 0 {
		newest = changes[n-1]
	}
	if r.modified != newest {
		c.report("%s at revision %d was read as of %d, expected %d", r.key, r.revision, r.modified, newest)
	}
	if r.revision < r.seen {
		c.report("%s was read at revision %d, and %d had been seen before", r.key, r.revision, r.seen)
	}
}
