// Package ingress serves the Ingresses of the class "kontiki": an HTTP and HTTPS server that leads requests to the pods of
// Services by host and path.
//
//	table.go      which rule a request falls under: made anew of all Ingresses whenever one changes
//	backend.go    a rule's Service and port: the addresses of its ready endpoints
//	proxy.go      one request: net/http/httputil.ReverseProxy, and another endpoint when one cannot be dialled
//	tls.go        which certificate, by the name that the client asks for
//	server.go     ports, limits, informers
//	status.go     the class, and the addresses in the status of Ingresses
//
// # Where it runs, and as whom
//
// In the process of `kontiki server --ingress`, as the user kontiki:ingress, who reads Ingresses, Services, EndpointSlices, Nodes
// and Secrets. Secrets are why it is no part of the node agent: a node reads only what its own pods need, and
// the keys of everybody's certificates would be in reach of whoever takes over any worker. A server has them
// anyway.
//
// # Which rule
//
// The host that is named exactly comes before a wildcard (*.example.com: one label), and that before rules without a host. Among
// the paths of a host the longest that matches wins, and of equal ones Exact; Prefix matches whole path elements, and
// ImplementationSpecific is Prefix. Then comes a default backend. Where two Ingresses claim the same, the older has it.
//
// # Limits
//
// Headers of 64 KiB, which must come within 10 s; 2 minutes between requests; 4096 connections to each port, others wait;
// 3 endpoints are tried, each for 2 s; an endpoint has a minute for the head of its answer. Bodies may be of any size and take any
// time, and so may WebSockets. Paths with "." or ".." as an element are refused.
//
// Not done: backends that are resources or Services of type ExternalName (503), HTTP/3, annotations of other controllers.
//
// Read table.go first.
package ingress
