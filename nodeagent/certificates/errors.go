package certificates

import "errors"

var (
	// ErrNotJoined says that there are no certificates yet, nor a token to get them with.
	ErrNotJoined = errors.New("this node has not joined a cluster")
	// ErrExpired says that the node's client certificate is over, so that it cannot ask for another.
	ErrExpired = errors.New("the certificate of this node has expired")
	// ErrDenied says that somebody, or the signer, has turned the request down.
	ErrDenied = errors.New("the signing request was turned down")
	// ErrUndecided says that nobody has approved the request in time.
	ErrUndecided = errors.New("nobody has approved the signing request")

	errNotServing = errors.New("the agent has no serving certificate yet")
)
