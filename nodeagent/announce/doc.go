// Package announce has one node answer for each address of a load balancer, by ARP (RFC 826) or NDP (RFC 4861), so that
// machines in the nodes' network find it there; the Service rules of that node do the rest.
//
//	choose.go     who announces an address: the same on every node, without talking
//	members.go    which nodes are alive: a word in their Leases, every period while there is something to announce
//	announcer.go  each period: look, take, keep, give up
//	wire.go       the kernel: the address on an interface, for lifetime and no longer; arp.go, ndp.go: what is sent
//
// # Who
//
// Of the nodes that are alive and may (with externalTrafficPolicy Local: those with a ready endpoint of the Service; none that
// is excluded from external load balancers) the one announces an address whose hash with it is highest. When a node comes
// or goes only its share moves.
//
// # Two at once
//
// A node that is dead must not go on answering. It cannot be told so; therefore the kernel is told when to stop:
//
//	0 s   a node renews its word in its Lease, and the lifetime of its addresses
//	6 s   its agent has done neither since: the kernel has taken the addresses off, whatever became of the agent
//	8 s   the others have seen no renewal for that long: one of them takes the addresses, and tells the network
//
// An agent that runs and cannot reach the API server does not know whether others have it for dead. It keeps what it has, so
// that Services outlive their control plane, takes nothing new, and asks the network before each renewal whether somebody
// else answers for the address: then it gives it up. So where only the API server is out of reach both answer for at most a
// period; where the network is cut in two, each part has one that answers, until it heals and one of the two gives up.
// Who has taken an address says so repeatedly, which mends what others have remembered meanwhile.
//
// A node that comes (back) says so first, and takes what is its own 3 s later, when the others have seen it.
//
// An agent that restarts finds on the interface what the one before it held: the kernel takes that off 4 to 6 s after the stop.
// It goes on with it at once, if it can say so: the others did not miss a word. It leaves an address to another node only when
// that has proven to be alive since: a word that was there from the start may be a dead node's.
//
// An agent that is cut off and then dies leaves its addresses: until at most a period after the others may take them, or, when
// it has asked the network since, for lifetime after that.
//
// Limits: a period is one list of Leases and one renewal for each node, so it is made for some tens of nodes. The
// address has to be of a network that the nodes are in (or routed to them all).
//
// Read announcer.go first.
package announce
