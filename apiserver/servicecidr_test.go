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
