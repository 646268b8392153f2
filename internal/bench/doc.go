// Command bench measures Kontiki on this machine and prints the figures: `make bench`.
//
// The store is compared with etcd (package compare). The API server and a node are measured by themselves,
// as a `kontiki dev` of their own, through client-go and the files of bin/. Everything runs on loopback and
// in a temporary directory that is removed at the end; the containers of the node part need root, and that
// no other node runs on the machine. Figures are noisy: read them as ratios of runs on the same machine.
//
// For tuning, one load alone (`make bench` builds bin/bench and its members first):
//
//	bin/bench -only put256 -clients 128 -seconds 3 -columns grpc,own
package main
