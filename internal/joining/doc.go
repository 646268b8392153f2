// Package joining is how a machine that knows nothing but a token (internal/bootstraptoken) gets to trust a cluster, and
// how a server then gets the cluster's keys.
//
// The token says the hash of the cluster's authority. An API server shows its authorities behind its certificate in the
// TLS handshake, so the machine can tell in the handshake whether one of them has that hash and has signed for who is at
// the other end (pin.go). Nothing was sent until then, and above all not the secret part of the token.
//
// Agents go on with a signing request (nodeagent/certificates). Servers fetch the keys that all servers share (keys.go):
// whoever has a token of the group bootstraptoken.ServerGroup can be everybody in the cluster. What all machines must agree
// on, and where the store's members are, the servers say, too (cluster.go): nobody has to give the same flags everywhere.
package joining
