// Package podstate decides. It holds what is known of one pod on the node (state.go), what to do next
// (plan.go, init.go, terminate.go) and what to tell the API about it (status.go, phase.go, conditions.go).
//
// Everything is a function of the pod object, the runtime's state and the time: nothing is remembered between two
// decisions, so an agent that was restarted decides as the one before it would have. Restart counts and back-off
// delays are read from the containers themselves (their attempt number and an annotation).
//
// Read state.go, then plan.go.
package podstate
