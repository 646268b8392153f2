// Command bench measures Kontiki on this machine and prints the figures: `make bench`.
//
// The store is measured in this process, the API server and the node as a `kontiki dev` of their
// own, through client-go and the files of bin/. Everything runs on loopback and in a temporary
// directory that is removed at the end; the containers of the node part need root, and that no other
// node runs on the machine. Figures are noisy: read them as ratios of runs on the same machine.
//
// Not yet: the same loads against etcd and kube-apiserver, side by side.
package main
