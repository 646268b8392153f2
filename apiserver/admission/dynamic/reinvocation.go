package dynamic

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"kontiki/apiserver/admission"
)

// Reinvocation remembers over the two rounds of mutating admission which webhooks, or which policies, are asked a second
// time: those that wish it and after which the object has changed. K tells them apart.
type Reinvocation[K comparable] struct {
	asked map[K]bool // wish it, and have seen the object as it is now
	due   map[K]bool // wish it, and the object has changed since
	last  runtime.Object
}

// ReinvocationOf is that of a plugin in a request.
func ReinvocationOf[K comparable](r *admission.Request, plugin string) *Reinvocation[K] {
	return r.State(plugin, func() any { return &Reinvocation[K]{asked: map[K]bool{}, due: map[K]bool{}} }).(*Reinvocation[K])
}

// Begin begins a round. If anything else has changed the object between the rounds, all that wish are due.
func (s *Reinvocation[K]) Begin(r *admission.Request) {
	if r.SecondRound() && !equality.Semantic.DeepEqual(s.last, r.Object) {
		s.allDue()
	}
}

// End ends a round.
func (s *Reinvocation[K]) End(r *admission.Request) {
	if r.Object != nil && !r.SecondRound() && len(s.asked) > 0 {
		s.last = r.Object.DeepCopyObject()
	}
}

// Skip says whether one is left out in this round.
func (s *Reinvocation[K]) Skip(r *admission.Request, one K) bool {
	return r.SecondRound() && !s.due[one]
}

// Done notes that one was asked, whether it wishes to be asked again, and whether it has changed the object.
func (s *Reinvocation[K]) Done(r *admission.Request, one K, wishes, changed bool) {
	if changed {
		s.allDue()
		r.AskAgain()
	}
	if wishes {
		s.asked[one] = true
	}
}

func (s *Reinvocation[K]) allDue() {
	for one := range s.asked {
		s.due[one] = true
	}
	clear(s.asked)
}
