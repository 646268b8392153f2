package apiserver_test

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kontiki/apiserver"
	"kontiki/internal/pki"
	"kontiki/raftstore"
)

// Servers that start and stop at the same time are all among the endpoints of the Service kubernetes when they are ready, and
// none is when it has stopped. Those with another port have a slice of their own.
func TestKubernetesServiceHasAllServers(t *testing.T) {
	dir := t.TempDir()
	keys, err := pki.Open(dir+"/pki", pki.Options{NodeName: "n"})
	require.NoError(t, err)
	store, err := raftstore.Open(raftstore.Config{Dir: dir + "/store", NodeID: "n", Bootstrap: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	config := func(i int) apiserver.Config {
		return apiserver.Config{AdvertiseAddress: netip.MustParseAddr(fmt.Sprintf("10.1.2.%d", i)), AdvertisePort: uint16(6443 + i/4)}
	}
	first, stopFirst := serveOn(t, store, keys, config(1))
	defer stopFirst()
	client := kubernetes.NewForConfigOrDie(first)

	var starting, stopping sync.WaitGroup
	stops := make([]func(), 5)
	for i := range stops {
		starting.Go(func() { _, stops[i] = serveOn(t, store, keys, config(i+2)) })
	}
	starting.Wait()
	require.Equal(t, map[string][]string{
		"kubernetes":   {"6443 10.1.2.1", "6443 10.1.2.2", "6443 10.1.2.3"},
		"kubernetes-2": {"6444 10.1.2.4", "6444 10.1.2.5", "6444 10.1.2.6"},
	}, slicesOf(t, client))
	require.Equal(t, []string{"6443 10.1.2.1", "6443 10.1.2.2", "6443 10.1.2.3", "6444 10.1.2.4", "6444 10.1.2.5", "6444 10.1.2.6"}, endpointsOf(t, client))

	for _, stop := range stops {
		stopping.Go(stop)
	}
	stopping.Wait()
	require.Equal(t, map[string][]string{"kubernetes": {"6443 10.1.2.1"}}, slicesOf(t, client))
	require.Equal(t, []string{"6443 10.1.2.1"}, endpointsOf(t, client))
	leases, err := client.CoordinationV1().Leases("kube-system").List(t.Context(), metav1.ListOptions{LabelSelector: "apiserver.kubernetes.io/identity=kontiki"})
	require.NoError(t, err)
	require.Len(t, leases.Items, 1)
	require.Equal(t, "apiserver-10.1.2.1-6443", leases.Items[0].Name)
}

func slicesOf(t *testing.T, client kubernetes.Interface) map[string][]string {
	list, err := client.DiscoveryV1().EndpointSlices("default").List(t.Context(), metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=kubernetes"})
	require.NoError(t, err)
	found := map[string][]string{}
	for _, slice := range list.Items {
		for _, e := range slice.Endpoints {
			found[slice.Name] = append(found[slice.Name], fmt.Sprint(*slice.Ports[0].Port, " ", e.Addresses[0]))
		}
	}
	return found
}

func endpointsOf(t *testing.T, client kubernetes.Interface) (found []string) {
	endpoints, err := client.CoreV1().Endpoints("default").Get(t.Context(), "kubernetes", metav1.GetOptions{}) //nolint:staticcheck // old clients read it
	require.NoError(t, err)
	for _, subset := range endpoints.Subsets {
		for _, a := range subset.Addresses {
			found = append(found, fmt.Sprint(subset.Ports[0].Port, " ", a.IP))
		}
	}
	return found
}
