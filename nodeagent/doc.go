// Package nodeagent runs the pods of one node: it is to a Kontiki node what the kubelet is to a Kubernetes node.
//
// It talks upwards to the API with client-go, like any client, and downwards to a container runtime with CRI v1
// over gRPC, whichever runtime that is: nodeagent/runtime, nodeagent/simulated or a containerd socket.
//
//	API server ── informer ──▶ pods.go ──▶ worker.go (one per pod) ──▶ CRI
//	     ▲                                   │  podstate decides what to do
//	     └── status.go (patches) ◀───────────┘
//
// Invariants:
//   - What to do follows from the pod object and the runtime's state alone (podstate). Whatever the agent remembers
//     beside them only saves work or waits; losing it in a crash does no harm.
//   - A pod that has finished (Succeeded, Failed) is never started again.
//   - A pod object is deleted by the agent only when none of its containers runs.
//   - The agent touches only sandboxes and containers that carry its own node label.
//   - Containers outlive the agent: Run's end stops nothing. Without an API server pods keep running and
//     are restarted, also after a restart of the agent (checkpoint.go).
//
// Read worker.go first: it has the life of a pod. Then pods.go, node.go and server.go.
package nodeagent
