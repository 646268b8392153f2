// Package certificates gives a node agent its certificates: it joins a cluster with a token, once, and then renews what it
// has by itself, as a kubelet does with TLS bootstrapping and certificate rotation.
//
// Below its directory are ca.crt (whom the agent trusts), client.pem (system:node:NAME, with its key), serving.pem
// (how the agent is called), and kubeconfig. They are written when they are complete: a join that fails leaves
// nothing that a later one could trip over. The token is not kept.
//
// Invariants:
//   - The secret part of the token is sent only to who has proved to be of the token's cluster (internal/joining).
//   - Private keys do not leave the machine.
//   - Once joined, the agent starts and serves without the API server, as long as its certificates last.
//   - What is in use stays in use until something better is on disk.
//
// Read manager.go first, then join.go and request.go.
package certificates
