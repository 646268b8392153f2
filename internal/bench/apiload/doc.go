// Package apiload puts the loads of the API server's part of the bench on any Kubernetes API, through client-go: the
// same client, data and durability for a Kontiki and a kube-apiserver.
//
// Everything happens in a namespace of its own, which is removed before and after. Beside each figure stands what a
// kube-apiserver with an etcd did on the machine of issue 4, and what Kontiki must reach. Only figures of the same machine
// and hour can be compared; the client shares its cores with the server.
//
// Read run.go first.
package apiload
