// Package leader lets one of several processes act: the one that holds a coordination.k8s.io Lease, in the way of Kubernetes'
// own leader election: the same fields with the same meaning, so that kubectl shows who holds it since when.
//
// It is not client-go's (tools/leaderelection), for three reasons. Candidates there ask for the Lease every RetryPeriod, up to
// 2.2 of them apart, so that a Lease of three seconds is noticed to be over after five, at the cost of six reads a second for
// each candidate; here they watch it, take it in the moment in which it is over or given back, and read nothing. A holder
// there that has lost the Lease, or was paused and does not know yet that it has, can still write; here its client refuses to.
// And its loop can be tested in virtual time.
//
// # Who may act
//
// A Lease is valid for Config.Duration D after its last renewal. The holder renews every D/3, and dates a renewal by when it
// began to send it. When 2D/3 have passed since then it stops: its work's context ends, and its clients (Elector.REST) refuse
// to write from that moment on, by its own monotonic clock, also in a process that was stopped and has just gone on. A
// candidate dates a renewal by when it saw it, which is later, and takes the Lease when it has seen none for D; the API server
// refuses that if there was one after all (resourceVersion). So two never begin to write at the same time as long as their
// clocks run equally fast to D/3 in D; what time they show does not matter. As in Kubernetes, what was sent before may arrive
// after.
//
// How soon does another take over?
//
//	the holder stops (SIGTERM)           at once: it gives the Lease back
//	it is started again                  at once: the Lease has its name
//	it is killed, paused or cut off      D after its last renewal
//	there is no quorum meanwhile         D runs on: at once when there is one again
//
// What it costs: 3/D writes a second, and a watch for each candidate.
//
// Read leader.go first, then campaign.go and term.go; fence.go is what refuses to write, lease.go the object.
package leader
