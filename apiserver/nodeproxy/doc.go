// Package nodeproxy is the API server's side of the streams to nodes: pods/log, pods/exec, pods/attach,
// pods/portforward, and the proxy subresources of pods, nodes and services.
//
// The agents speak the kubelet's protocol on their port: plain HTTP for logs, SPDY (or the old WebSocket protocols) for
// the rest. Clients since kubectl 1.31 speak WebSocket and fall back to SPDY, noisily. As in Kubernetes it
// is this side that translates:
//
//	client asks for                            served by
//	exec, attach: WebSocket v5.channel.k8s.io  translate.go: each channel becomes a SPDY stream to the agent
//	portforward: WebSocket SPDY/3.1+…          tunnel.go: the WebSocket messages are the bytes of a SPDY connection
//	SPDY, older WebSocket protocols            passed through as they are (stream.go)
//
// A method's error means that nothing has been written yet; it is an API status error for the caller to send.
//
// Read nodeproxy.go first.
package nodeproxy
