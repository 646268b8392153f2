package network

import "errors"

var (
	// ErrNotReady: no pod can be attached, because there is no CNI configuration yet, it is faulty, or its plugins say so.
	ErrNotReady = errors.New("pod network is not ready")
	// ErrNoHostPorts: a pod wants host ports, but neither nft nor iptables is on this machine.
	ErrNoHostPorts = errors.New("host ports need nft or iptables on the node")
	// ErrBandwidth: a pod's annotation does not say a bandwidth.
	ErrBandwidth = errors.New("bandwidth of pod")
)
