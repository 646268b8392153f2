// Package expression compiles the CEL of webhooks and admission policies: match conditions, validations, messages, audit
// annotations, variables and patches. The language, its libraries and its cost limits are Kubernetes' own
// (k8s.io/apiserver/pkg/cel); what is here says which variables and results each kind of expression has, so that
// apiserver/registry can refuse what does not compile and apiserver/admission/policy can run what does.
//
// Read text.go first (the kinds), then compiler.go.
//
// Invariants:
//   - What compiles here when an object is written compiles again when the object is taken into use.
//   - Nothing is built before the first expression is compiled: a cluster without any pays nothing.
package expression
