// Package authconfig reads the files of --authentication-config and --authorization-config: AuthenticationConfiguration and
// AuthorizationConfiguration of apiserver.config.k8s.io, as kube-apiserver does. Unknown fields, and whatever Kubernetes' own
// validation refuses, are errors that name the field.
package authconfig
