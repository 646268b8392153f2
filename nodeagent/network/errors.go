package network

import "errors"

var (
	// ErrNotReady: there is no CNI configuration yet, usually because the node has no pod CIDR.
	ErrNotReady = errors.New("pod network is not ready")
	// ErrNoHostPorts: a pod wants host ports, but neither nft nor iptables is on this machine.
	ErrNoHostPorts = errors.New("host ports need nft or iptables on the node")
)
