package joining

import (
	"errors"
	"io"
	"net"
)

var (
	// ErrOtherCluster says that none of the server's authorities has the token's hash: the hash is wrong, the token is
	// another cluster's, or somebody stands in for the server.
	ErrOtherCluster = errors.New("the server is not of the token's cluster: none of the authorities it shows has the token's CA hash")
	// ErrImpostor says that the server shows the right authority, whose certificate is public, but has no certificate of it.
	ErrImpostor = errors.New("the server shows the authority of the token's cluster, but its own certificate is not good for this address")
	// ErrRefused says that the server does not take the token.
	ErrRefused = errors.New("the server refuses the token")
	// ErrUnavailable says that the server cannot answer now: it starts, or the store has no leader.
	ErrUnavailable = errors.New("the server cannot answer now")
	// ErrProtocol says that a cluster's members and this program do not understand each other.
	ErrProtocol = errors.New("the cluster has another protocol")
)

// IsTemporary says whether it may help to ask again: nobody was there, the connection broke, or ErrUnavailable.
func IsTemporary(err error) bool {
	if errors.Is(err, ErrUnavailable) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return true
	}
	var op *net.OpError
	return errors.As(err, &op) && (op.Op == "dial" || op.Op == "read" || op.Op == "write") // and not "remote error", an alert of TLS
}
