// Package routes leads packets to the pods of other nodes.
//
// Each node has a range of pod addresses. To another node's range there is a route
//
//   - by way of that node itself, where both are neighbours in one network (as with flannel's host-gw): nothing is added to
//     a packet;
//
//   - through a VXLAN device where there are routers between them, which know nothing of pod addresses (RFC 7348). The
//     device's link-layer address follows from the node's range, so nodes need not tell each other anything:
//
//     10.244.2.0/24 via 10.244.2.0 dev kontiki-vxlan onlink     the route; the gateway is the range's first address
//     10.244.2.0 lladdr 0a:58:0a:f4:02:00 dev kontiki-vxlan     its neighbour entry
//     0a:58:0a:f4:02:00 dev kontiki-vxlan dst 192.0.2.12        where frames for it are sent
//
// Which of the two is asked of the kernel for each peer, so a cluster may have both. Pods keep the MTU of the node's
// network; where a packet does not fit through the device, the node tells its sender (path MTU discovery).
//
// Invariants:
//   - What is written bears the route protocol 107 and is in the device kontiki-vxlan; nothing else is touched, and what
//     bears it and is not wanted goes.
//   - Apply may be called at any time, and makes everything anew that a reboot or somebody's flush took. Follow says when.
//
// Read routes.go first.
package routes
