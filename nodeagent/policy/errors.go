package policy

import "errors"

var (
	// ErrNoNFTables says that the machine has no nft, or that it does not work.
	ErrNoNFTables = errors.New("policy: nftables cannot be used")
	// ErrNotWritten says that the rules of a pod could not be written: it must not start.
	ErrNotWritten = errors.New("policy: rules of the pod could not be written")
)
