// Package probe runs the startup, readiness and liveness probes of containers.
//
// check.go makes one probe of each kind. worker.go repeats one probe of one container instance by its
// thresholds. manager.go owns the workers of all pods and remembers the results, which it keys by the
// container's id: a restarted container is another instance and starts with no failures (ND-03).
//
// Read worker.go first.
package probe
