// Operator is an example of a controller for a custom resource, written with controller-runtime as one would write it
// for any Kubernetes cluster. A Site is a Deployment that greets its visitors; a directory (a ConfigMap) lists all of them.
//
//	reconcile.go    the reconciler: what a Site becomes
//	deployment.go   what it applies for that
//	directory.go    the entry elsewhere that a finalizer takes away again
//	main.go         the manager: leader election, cache, webhook server
//	trust.go        a certificate for the conversion webhook, and who has to trust it
//	api/v1          the version that is stored, with its rules
//	api/v1beta1     an older version, and its conversion
//	config          what an administrator applies first: definition, account, roles
//
// It runs outside the cluster, or in it, and needs no more rights than config/rbac gives it.
// docs/operators.md goes through it step by step. Read reconcile.go first.
package main

//go:generate controller-gen object crd paths=./api/... output:crd:dir=config/crd
//go:generate controller-gen rbac:roleName=site-operator paths=. output:rbac:dir=config/rbac
