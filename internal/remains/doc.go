// Package remains takes away what a node leaves on a machine when it does not run any more and its files go: processes
// (kill.go), mounts and cgroups (trees.go). Uninstalling a node and ending a lab are the two occasions.
//
// All functions try everything and return what did not work; what is gone already is no error.
package remains
