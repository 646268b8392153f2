// Package controlplane puts the store and the API server of one machine together: what `kontiki
// server` and `kontiki dev` run, and what tests of API clients run against.
//
// Open returns with the API server listening; it is ready (WaitReady) when the store has a leader
// and the objects that every client expects are there. A nil error from Close means that everything
// acknowledged is on disk. Read controlplane.go first.
//
// The store is a raft member in this process (member.go, peers.go), alone or one of several, or an etcd outside of it
// (Config.Outside).
package controlplane
