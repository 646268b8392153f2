// Package e2e holds the end-to-end tests: the binaries of bin/ as a user runs them, driven from
// outside by kubectl, curl, client-go and controller-runtime.
//
// The tests need root and what `make build` puts into bin/. TestMain runs the whole test binary
// again inside network, mount and PID namespaces of its own, so that bridges, ports, mounts and
// processes of a run cannot meet those of the machine, and vanish with it, even when a test
// panics or is killed. Only cgroups outlive namespaces; they are removed by name at the end.
//
// Read sandbox_test.go first, then node_test.go (one `kontiki dev` process), then any test.
package e2e
