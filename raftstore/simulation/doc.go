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
//	make simulate                                                     1,000 seeds
//	make soak                                                         20,000 seeds, others each time
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
// Bugs, in raft and in raftstore (each has a test there now): a pipeline that hangs (pipeline.go), a leader of
// five that waits for a fifth answer (quorum.go), a lost write after a lost disk, since the new member voted in
// the old one's name (votes.go), upstream #697 (package rejoin), a Close that never returns (open.go).
//
// Mutations, made by hand and taken back; in brackets how many of the first seeds failed:
//
//	linearizable reads without asking the quorum               2 of 60
//	no barrier at the beginning of a term                      8 of 60
//	linearizable reads do not wait until the index is applied  60 of 60
//	every 200th entry applied twice                            56 of 60
//	entries that are replayed after a start applied again      50 of 58
//	a watch drops every 150th revision                         58 of 60
//	a watch that reads the file skips a revision               12 of 60
//	progress one revision ahead                                60 of 60
//	log writes acknowledged before they are made               the first (raft panics)
//	a proposal of unknown outcome tried again                  84 of 168
//	a proposal that raft has reported as withdrawn             169 of 200
//	snapshots of a file that is not yet durable                47 of 105
//	one member writes another value                            57 of 60
//	an empty disk votes                                        2 of 108
//	the answers of a quorum miscounted                         hangs
//
// Not yet: leases; clocks that jump (time is one for all members of a bubble); a whole process that stands
// still (a pause holds back the network and the disk, not the timers).
//
// Read first: simulation_test.go, then faults_test.go and client_test.go.
package simulation
