// Package leader lets one of several processes act: the one that holds a coordination.k8s.io Lease. It is client-go's leader
// election, campaigning again after a loss instead of ending the process.
package leader
