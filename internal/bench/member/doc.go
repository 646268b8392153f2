// Package member is what internal/bench/compare and the programs that it starts have in common: how a member is
// started (Spec), how it is asked to load itself (Request), and the loads.
//
// Read first: serve.go, then workload.go.
package member
