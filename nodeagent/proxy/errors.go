package proxy

import "errors"

var (
	// ErrConfig says that a Config cannot be used.
	ErrConfig = errors.New("proxy: invalid configuration")
	// ErrNoNFTables says that the machine has no nft, or that it does not work.
	ErrNoNFTables = errors.New("proxy: nftables cannot be used")
)
