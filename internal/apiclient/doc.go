// Package apiclient is what Kontiki's own API clients (controllers, scheduler, node agent) have in common
// beyond client-go: how they speak (config.go), how they read informers (informer.go), and how they call a cluster that has
// several API servers, any of which may go away.
//
// Servers (servers.go, read it first) is a client's list of them. Requests go to one at a time; which one, and when to
// another, is decided in three places:
//
//	balanced.go  a request that fails: the next server gets it, at once
//	health.go    a server that does not answer /readyz: another that does is called, and watches are cut to begin again there
//	follow.go    the endpoints of the Service default/kubernetes: who there is
//
// watch.go keeps informers from backing off because of any of this.
//
// Invariants: a request that writes is sent to another server only if it was never sent. A server is only left for one that
// is ready. All clients together are spread evenly, whichever servers there are. One that falls silent (a machine that is
// paused, or cut off) is left within period·3/2 + patience, 2.5 s, and a watch runs elsewhere at once then.
package apiclient
