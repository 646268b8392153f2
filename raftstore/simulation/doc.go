// Package simulation runs whole clusters in virtual time, lets everything go wrong, and checks all that was
// said to clients. It contains only tests.
//
// # One seed
//
// A seed decides a cluster (members, snapshot thresholds, commit intervals), 20 to 40 virtual seconds of
// faults, and what the clients do. The members are real: raftstore.Member with raft, the mvcc store and their
// files (in /dev/shm if there is one, where a sync costs nothing). The network is this package's
// (stream_test.go): it keeps the contract of TCP, but may delay, hold back one direction or both, lose (which
// costs a retransmission), break connections, and deliver what somebody has long given up and sent again.
// Everything runs in a testing/synctest bubble, where time passes only when all wait.
//
// The same seed gives the same faults at the same virtual moments, and clients that want the same. It
// does not give the same interleaving: raft draws its timeouts itself, and what happens in the same moment is
// in the hands of the Go scheduler. A seed that fails fails again soon, not always at once:
//
//	go test ./raftstore/simulation                                    100 seeds
//	go test ./raftstore/simulation -sim.seeds 1000 -timeout 30m       what CI runs
//	go test ./raftstore/simulation -sim.seed 42 -v -sim.log           one seed, with the members' log
//	go test ./raftstore/simulation -sim.seed 42 -count 50             one seed, again and again
//
// # What is checked
//
//   - History (replay_test.go): all members' watches tell the same history without gaps, and every revision
//     in it is what exactly one client's operation does, once, to the revision before, by a model that is
//     a map. What was acknowledged is there, at its revision, with its answer; what was refused is not.
//   - Order (replay_test.go): no operation is ordered before one that had returned when it was called.
//   - Linearizability again (linearizable_test.go), by porcupine, which looks at values and not at revisions.
//   - Watches (watcher_test.go): from any revision, with filters, resumed on any member: everything, once, in
//     order, no revision in two parts, the right previous versions, no progress beyond what was delivered.
//   - Members (simulation_test.go): all the same at every revision that all have; and all ready, with all
//     watches up to date, soon after the last fault.
//
// # What the checks caught
//
// Mutations, made by hand and taken back: see mutations in this file's history.
//
// Read first: simulation_test.go, then faults_test.go and client_test.go.
package simulation
