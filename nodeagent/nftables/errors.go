package nftables

import "errors"

// ErrUnavailable says that the machine has no nft, or that it does not work.
var ErrUnavailable = errors.New("nftables cannot be used")
