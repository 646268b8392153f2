// Package kubeversion says which release of Kubernetes Kontiki is like: the API server tells its clients, and an agent
// what its node runs, so that the two never differ. Kontiki's own version is another one.
package kubeversion
