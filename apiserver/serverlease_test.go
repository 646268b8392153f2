package apiserver_test

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
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

// A server on a machine without a network has no place that anybody could reach. It takes none, and removes the one that was
// left when the machine still had an address.
func TestKubernetesServiceOfServerWithoutAddress(t *testing.T) {
	dir := t.TempDir()
	keys, err := pki.Open(dir+"/pki", pki.Options{NodeName: "n"})
	require.NoError(t, err)
	store, err := raftstore.Open(raftstore.Config{Dir: dir + "/store", NodeID: "n", Bootstrap: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	for _, address := range []netip.Addr{{}, netip.MustParseAddr("127.0.0.1")} {
		_, stop := serveOn(t, store, keys, apiserver.Config{AdvertiseAddress: netip.MustParseAddr("10.1.2.1")})
		stop()
		server, config, stop := startOn(t, store, keys, apiserver.Config{AdvertiseAddress: address})
		client := kubernetes.NewForConfigOrDie(config)
		leave(t, client, "10.1.2.1:6443")

		require.NoError(t, server.TendPlaces(t.Context()))
		require.Empty(t, endpointsOf(t, client))
		require.Empty(t, slicesOf(t, client))
		leases, err := client.CoordinationV1().Leases("kube-system").List(t.Context(), metav1.ListOptions{LabelSelector: "apiserver.kubernetes.io/identity=kontiki"})
		require.NoError(t, err)
		require.Empty(t, leases.Items)
		stop()
	}
}

// leave leaves what a server leaves that is killed: its Lease, and its place among the endpoints.
func leave(t *testing.T, client kubernetes.Interface, place string) {
	_, err := client.CoordinationV1().Leases("kube-system").Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "apiserver-10.1.2.1-6443", Labels: map[string]string{"apiserver.kubernetes.io/identity": "kontiki"}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &place},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	patch := `{"subsets":[{"addresses":[{"ip":"10.1.2.1"}],"ports":[{"port":6443}]}]}`
	_, err = client.CoreV1().Endpoints("default").Patch(t.Context(), "kubernetes", apitypes.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(t, err)
	patch = `{"endpoints":[{"addresses":["10.1.2.1"]}]}`
	_, err = client.DiscoveryV1().EndpointSlices("default").Patch(t.Context(), "kubernetes", apitypes.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(t, err)
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
