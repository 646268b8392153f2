// Package network connects pods through CNI plugins (CNI spec 1.1), by way of libcni.
//
// A node has a configuration directory and directories of plugin programs. The first file by name is the network. When
// somebody put one there, it is used as it is. Otherwise SetPodCIDR writes the default: one bridge for the node, addresses
// from the node's pod CIDRs (of one IP family or both) by host-local, and one rule for each that masquerades them, where nft
// (or else iptables, by the bridge plugin) is there; Keep puts it back when somebody takes it away. To the default portmap
// and bandwidth are added in memory for those pods that ask for host ports or limits, because each doubles the time of an
// attachment. With Config.Foreign nothing is written: the node is not ready until a network add-on brings a file.
//
//	network.go       ADD, and the default network          plugin.go        how a program is run, and ended
//	conf.go          which list of plugins                 capabilities.go  host ports, bandwidth, DNS: what plugins are told
//	detach.go        DEL, CHECK, GC                        ready.go         VERSION and STATUS
//	router.go, masquerade.go, iptables.go                              orphans.go       plugins of an agent that was killed
//
// Invariants:
//   - An ADD that fails, for whatever reason, is followed by a DEL.
//   - A DEL (and CHECK, GC) has the configuration and arguments of its ADD, from libcni's cache, which survives the agent.
//   - No plugin holds anybody up for longer than Config.Timeout, and none outlives it.
//   - Everything kept here (address leases, libcni's cache) lies below Config.StateDir, so that several agents on one machine,
//     each in a network namespace of its own, do not meet.
//
// Configurations are read anew for each pod. Routes to the pods of other nodes are package routes.
//
// Read network.go first.
package network
