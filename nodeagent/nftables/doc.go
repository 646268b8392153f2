// Package nftables keeps a table of nftables rules that many owners have a part in: Services in package proxy, pods and
// NetworkPolicies in package policy.
//
// An owner's part is a Ruleset: chains, sets, and elements of sets and maps. When some owners' parts change, Apply writes the
// difference to what the kernel has, in one transaction, whose size follows from the change and not from the table.
//
// # Invariants
//
//   - The kernel has the rules of one moment: all or nothing of an Apply.
//   - Names of chains and sets belong to one owner. Elements may be claimed by several; then the first owner by name has it,
//     and the next one gets it when that goes.
//   - A change that the kernel refuses is followed at once by the whole table anew, in one transaction: somebody may have
//     taken away what it builds on. When that fails, too, the kernel has what it had, and the next Apply writes everything.
//     So does the first: what an earlier process left is replaced, never mixed with.
//   - Nothing here waits for a machine to have nft: each call asks anew, until one finds it.
//
// watch.go notices what others take away. Read table.go first.
package nftables
