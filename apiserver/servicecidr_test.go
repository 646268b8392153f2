package apiserver_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The range of cluster IPs is an object that clients find.
func TestDefaultServiceCIDR(t *testing.T) {
	_, c := start(t)
	const cidrs = "/apis/networking.k8s.io/v1/servicecidrs"
	body := string(c.get(cidrs + "/kubernetes").ok().body)
	require.Contains(t, body, `"cidrs":["10.96.0.0/16"]`)
	require.Contains(t, body, `"type":"Ready","status":"True"`)
	c.post(cidrs, `{"apiVersion":"networking.k8s.io/v1","kind":"ServiceCIDR","metadata":{"name":"x"},"spec":{"cidrs":["10.1.0.0/16","10.2.0.0/16"]}}`).
		fails(422, metav1.StatusReasonInvalid, "may specify no more than one IP for each IP family")
}

// Whose a cluster IP is can be looked up; an address that a user has put aside is not given out.
func TestClusterIPsAreObjects(t *testing.T) {
	_, c := start(t)
	const addresses, services = "/apis/networking.k8s.io/v1/ipaddresses", "/api/v1/namespaces/default/services"
	require.Contains(t, string(c.get(addresses+"/10.96.0.1").ok().body), `"parentRef":{"resource":"services","namespace":"default","name":"kubernetes"}`)

	c.post(services, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"s"},"spec":{"clusterIP":"10.96.7.7","ports":[{"port":80}]}}`).ok()
	shown := c.get(addresses + "/10.96.7.7").ok().object()
	require.Equal(t, map[string]string{"ipaddress.kubernetes.io/ip-family": "IPv4", "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"}, shown.GetLabels())
	require.NotEmpty(t, shown.GetUID())
	require.NotEmpty(t, shown.GetCreationTimestamp())
	c.delete(services+"/s", "").ok()
	c.get(addresses+"/10.96.7.7").fails(404, metav1.StatusReasonNotFound, "")

	c.post(addresses, `{"apiVersion":"networking.k8s.io/v1","kind":"IPAddress","metadata":{"name":"10.96.7.8"},"spec":{"parentRef":{"resource":"things","name":"mine"}}}`).ok()
	c.post(services, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"s"},"spec":{"clusterIP":"10.96.7.8","ports":[{"port":80}]}}`).
		fails(422, metav1.StatusReasonInvalid, "already allocated")
	require.Contains(t, string(c.get(addresses+"/10.96.7.8").ok().body), `"name":"mine"`)
}
