// Package frontproxy believes what a proxy in front of the API server says about who asks: the request headers X-Remote-User,
// X-Remote-Group and X-Remote-Extra-… ("authenticating proxy" in Kubernetes' documentation). Aggregation uses the same headers in the
// other direction.
//
// Invariants:
//   - Only who shows a client certificate of the front proxy's own authority, under one of the allowed names, is believed.
//   - That certificate means nothing else: its common name is no user of the cluster.
//   - Strip removes the headers from every request, whoever sent it, so that nothing behind the API server can take them for true.
//
// Read frontproxy.go first.
package frontproxy
