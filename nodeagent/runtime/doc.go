// Package runtime runs pods on this machine: it is a CRI v1 runtime (k8s.io/cri-api) on runc,
// overlayfs and CNI, called in process (Conn) or on a unix socket (ServeUnix).
//
// A sandbox is a directory with namespaces bound to files; no process keeps them alive,
// except a pause process when containers share a PID namespace. A container is a bundle
// directory and, while it runs, a shim process (package shim) that holds its streams, its log
// and its exit status.
//
// On disk, below Config.StateDir:
//
//	sandboxes/ID/sandbox.json    written when the sandbox is ready, and when it stops
//	sandboxes/ID/ns/…            pinned namespaces: net, ipc, uts, pid
//	sandboxes/ID/shm             /dev/shm of the pod
//	sandboxes/ID/{hosts,hostname,resolv.conf}
//	containers/ID/container.json written last in CreateContainer
//	containers/ID/…              runc's bundle, the shim's files, the root file system
//	runc/                        runc's own state
//	cni/                         address leases and libcni's cache
//
// Invariants: what has its JSON file exists as a whole and is found again after a restart
// (restore.go); what has none is debris of a crash and is removed at the next start. No
// file here is fsynced: after a power cut the mounts, namespaces and processes are gone as
// well, and a file that cannot be read counts as debris. Only images are durable.
//
// Nothing here is held in memory that the files and shims cannot give back, so kill -9 of the
// agent leaves running containers alone and loses no exit code.
//
// With cgroup v1 and v2 alike: limits go to the controllers of v1 where they are mounted, and to v2 otherwise (host.go). The
// tests of this package run on v1 in CI; on v2 alone those of exit codes, limits, namespaces, debris, restarts, exec and the
// life of a pod were run, in a virtual machine of Debian 12.
//
// Read runtime.go first, then sandbox.go, container.go and start.go.
//
// Not yet: user namespaces, seccomp profiles (runc built without cgo tags has none, so
// RuntimeDefault runs unconfined; a Localhost profile is refused), AppArmor and SELinux
// (ignored), CDI devices, image volumes, checkpoints, metrics descriptors.
package runtime
