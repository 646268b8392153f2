// Package table turns objects into the Tables (meta.k8s.io/v1) that kubectl get prints. Which columns
// a kind has, and how they are filled, is part of its row in the registry; this package adds what is
// the same for all: names and ages where a row says nothing, the object beside each line, and the rule
// that a watch sends its columns once.
package table
