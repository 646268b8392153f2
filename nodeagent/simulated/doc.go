// Package simulated is a CRI v1 runtime whose sandboxes and containers are only status.
//
// It lets a machine that cannot run containers (no root, no namespaces, no cgroups) still host a
// node, so that the API, the store, the controllers and the scheduler can be studied, and it lets
// tests of the node agent choose how a container behaves. A pod on it gets an address of the pod
// CIDR, its containers start at once, write one line to their CRI log file and run until they are
// stopped. Nothing listens on the address; exec, attach and port-forward are refused with a sentence
// that says so.
//
// A pod's annotations steer its containers; a suffix ".NAME" limits one to the container NAME:
//
//	simulated.kontiki.io/exit-after: 2s    it exits by itself so long after its start
//	simulated.kontiki.io/exit-code: "1"    with this code (0 if absent)
//	simulated.kontiki.io/stop-after: 5s    after SIGTERM it needs so long to end
//	simulated.kontiki.io/oom: "true"       its own exit counts as an out-of-memory kill
//
// Images need no registry: any name can be pulled, except those of a registry below ".invalid"
// (RFC 2606), whose pulls fail.
//
// With Config.StateFile the sandboxes and containers are kept in a file, so that a restarted agent
// process finds them again, as it finds those of a real runtime.
//
// Read runtime.go first, then container.go.
package simulated
