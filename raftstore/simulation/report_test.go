package simulation

import (
	"fmt"
	"sync"
)

// report gathers what is wrong.
type report struct {
	mu       sync.Mutex // guards problems
	problems []string
}

// maxProblems: after these, no more are of use.
const maxProblems = 20

func (r *report) add(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.problems) < maxProblems {
		r.problems = append(r.problems, fmt.Sprintf(format, args...))
	}
}

func (r *report) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.problems
}
