// Package machines makes Debian machines for tests that follow docs/three-nodes.md and the drills beside it, command by command:
// each has a root file system of its own with nothing of Kontiki on it, systemd as its first process, a journal, a network
// interface, cgroups, and can be rebooted, switched off, and lose its power. The kernel is the test's machine's.
//
// A machine is systemd-nspawn(1) on a copy of what image.sh makes once (machine.go). A LAN is a network namespace with the
// bridge that they are plugged into (lan.go); no route leads out of it. Page finds the commands in a page, with the machine
// that each is for (page.go).
//
// Invariants: a machine ends with its test, whatever comes first, and takes its cgroups, mounts and interfaces with it; a
// command's output is whole.
//
// Read machine.go first; `make three-machines` runs the tests.
package machines
