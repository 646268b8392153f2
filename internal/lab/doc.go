// Package lab runs a cluster of several machines on one: each is a network namespace with an address of its own, a data
// directory and a cgroup, and runs the same program as a real machine would, joined in the same way.
//
//	              kontiki-lab 10.89.0.1/24 (bridge on this machine; front.go is at port 16443)
//	     ┌────────────────────┼────────────────────┐
//	s1 10.89.0.11        s2 10.89.0.12        s3 10.89.0.13      network namespaces kontiki-lab-s1 …
//	kontiki server       kontiki server       kontiki server     DIR/s1/data, DIR/s1/log …
//
// What a lab is, and what is broken in it, stands in DIR/lab.json, so that each command is a process of its own; one of them
// changes it at a time. Heal takes all back that is broken.
//
// Faults are the kernel's where it has them: nftables loses packets (packets.go), cgroups throttle disks (disk.go). Delays are
// made by a process (relay.go), and clocks moved in the vDSO of one (clock.go), so that both work on every kernel.
//
// Invariants:
//   - All names on this machine begin with "kontiki-lab"; one lab runs at a time on a machine, as the names of
//     network namespaces are the machine's (claim.go).
//   - Down leaves nothing: no process, namespace, interface, mount, cgroup or file, whatever state the lab is in.
//   - A pid is only ever signalled if the process still is one of the lab's: by its command line (process.go), or its cgroup.
//
// Read up.go first, then faults.go.
package lab
