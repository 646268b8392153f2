// Package nodeauth decides what a node may do: what its role system:node says, but of secrets, config maps, claims, volumes
// and service accounts only those that a pod on it needs. So who takes over one node gets the secrets of the pods
// there, and no others.
//
// It reads its own Node, and of lists and watches of pods only those that select its own (spec.nodeName). The rules are those of Kubernetes'
// Node authorizer (1.37), asked in another way: instead of a graph of all objects, the pods on the node that asks are gone through.
//
// A mirror pod, which a node writes itself, gives it nothing.
//
// What a node may write, which is a matter of the object and not of its name, is admission's NodeRestriction.
//
// Read authorizer.go first, then references.go: what a pod needs.
package nodeauth
