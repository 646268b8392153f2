// Package network connects pods through CNI plugins (CNI spec 1.1), by way of libcni.
//
// A node has a configuration directory and a directory of plugin programs. When somebody
// put a configuration there, it is used as it is. Otherwise SetPodCIDR writes the default:
// one bridge for the node, addresses from the node's pod CIDR by host-local, and one rule
// that masquerades them, where nft (or else iptables, by the bridge plugin) is there; portmap is added in memory for those pods that
// ask for host ports, because it doubles the time of an attachment.
//
// Everything an agent keeps here (address leases, libcni's cache) lies below Config.StateDir,
// so that several agents on one machine, each in a network namespace of its own, do not meet.
//
// Read network.go first. Routes to the pods of other nodes are package routes. Not yet: bandwidth limits,
// reloading when a foreign configuration changes while no pod comes or goes (it is read anew
// for each pod).
package network
