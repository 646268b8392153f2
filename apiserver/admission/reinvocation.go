package admission

// Mutating admission has two rounds. When a webhook or a policy has changed an object that others have seen before it, all
// plugins complete it once more, and those webhooks and policies are asked again that wish so (reinvocationPolicy IfNeeded).
// There is never a third round.

// rounds is what a request keeps over both.
type rounds struct {
	again  bool // somebody asks for the second
	second bool
	states map[string]any
}

// AskAgain asks for the second round.
func (r *Request) AskAgain() { r.rounds.again = true }

// SecondRound says whether this is it.
func (r *Request) SecondRound() bool { return r.rounds.second }

// State is what a plugin keeps over both rounds, made by first in the first one.
func (r *Request) State(plugin string, first func() any) any {
	if state, ok := r.rounds.states[plugin]; ok {
		return state
	}
	if r.rounds.states == nil {
		r.rounds.states = map[string]any{}
	}
	state := first()
	r.rounds.states[plugin] = state
	return state
}
