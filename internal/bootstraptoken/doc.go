// Package bootstraptoken knows the tokens by which machines join a cluster: what they look like, and the Secrets of type
// bootstrap.kubernetes.io/token in the namespace kube-system that hold them, which are Kubernetes' own.
//
// A token is six characters that name it, a dot, and sixteen that are secret. What an operator hands to a new machine
// also says which cluster it is for (Join): K10, the SHA-256 of the public key of the cluster's authority in hexadecimal,
// two colons, the token. The form is that of k3s, the hash that of kubeadm.
//
// Errors never contain the secret part. Read token.go first.
package bootstraptoken
