// Package shim is the small process between the node agent and one container. It outlives
// the agent: it holds the container's standard streams, writes its log, waits for it and
// leaves the exit status in a file.
//
// The program (cmd/kontiki-shim) has three modes:
//
//	kontiki-shim run               look after the container whose bundle is the working directory
//	kontiki-shim exec PIDFILE CMD… run `runc exec --detach` and wait for the process it made
//	kontiki-shim pause             be process 1 of a PID namespace that several containers share
//
// In run mode the working directory holds, beside runc's config.json:
//
//	shim.json     Spec, written by the runtime before the start
//	shim.sock     requests (wire.go): kill, attach, resize, reopen, watch
//	started.json  Started, written once the container runs
//	exit.json     Exit, written last: when it is there, nothing of the container is left in
//	              runc, its cgroup is gone and its log is complete
//
// The file descriptor 3 tells the runtime how the start went: "ok", or what runc said.
//
// The package is also the runtime's half of the protocol (Client), so that both sides read the
// same declarations. It imports nothing of Kubernetes: there is one such process per
// container, and each megabyte counts. Read run.go first.
package shim
