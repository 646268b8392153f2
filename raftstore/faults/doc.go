// Package faults tests the store as processes of an operating system, and has no code of its own: three members run
// in network namespaces that are joined by veth pairs, twenty writers use them through etcd's client, and a nemesis
// kills (-9), stops (SIGSTOP) and partitions members, preferably the leader. What raftstore/simulation
// does not have is real here: the kernel's TCP with its retransmission and back-off, files that outlive their process, clocks.
//
// # What is checked
//
// Each write of the test makes one revision with one event, and its value is unique. So the history that a
// watch from revision 1 tells is the order in which everything happened, and it suffices to compare with it:
//
//   - a watch on each member tells every revision once, in order, without a gap, and all tell the same;
//   - an acknowledged write is in the history once, at the revision that it was answered with;
//   - a write of unknown outcome is there at most once, and one that was refused is not there;
//   - each counter goes up by one with each event: no update is lost;
//   - what was acknowledged before a write or a linearizable read began is not after it (real-time order), so
//     with the above the history is linearizable;
//   - HashKV of the last revision is the same on all members.
//
// Another run makes disks slow instead (slowdisk_test.go), down to four writes a second, of one member or of all. Then the
// term must stay what it was: nobody is elected without a cause.
//
// # To run it
//
// Root is needed, for the namespaces; nothing of the host's network is touched. `go test` takes 20 seconds of faults, 20
// of slow disks, one longer partition and one slow link. -faults.duration and -faults.slowdisk say how long instead,
// -faults.snapshot how large a snapshot to send; `make soak` has 10 and 30 minutes, and 1 GiB. -faults.seed repeats the
// faults (not their effect: processes have no seed). A failing test prints the end of each member's log.
//
// Read first: faults_test.go, then nemesis_test.go and check_test.go.
package faults
