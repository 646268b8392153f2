// Package loadbalancer is what the controller that gives Services of type LoadBalancer their addresses and the nodes that
// announce them agree on.
//
//	spec.loadBalancerClass          none, or Class: the Service is Kontiki's to serve; others are somebody else's
//	annotation AddressesAnnotation  the addresses that the user wants, of the pool (or spec.loadBalancerIP, which is deprecated)
//	condition Assigned              True: status.loadBalancer.ingress has addresses of the pool, and nodes may announce them
//
// An address is held by an IPAddress object of its name, whose parent is the Service: nobody can make a second one, so no
// address is ever given to two Services, also where two servers both believe to run the controller.
package loadbalancer
