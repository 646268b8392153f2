// Package nodeauth decides what a node may do: what its role system:node says, but of secrets, config maps, claims, volumes
// and service accounts only those that a pod on it needs. So who takes over one node gets the secrets of the pods
// there, and no others.
//
// Which pods are on a node is looked up for each such request: there is no graph to keep, and none that could be behind.
//
// What a node may write, which is a matter of the object and not of its name, is admission's NodeRestriction.
//
// Read authorizer.go first.
package nodeauth
