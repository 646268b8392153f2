package apiserver_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kontiki/apiserver/aggregation/extensiontest"
	"kontiki/internal/pki"
	"kontiki/internal/testcluster"
)

// kubectl sees an aggregated server like any other group. With that down it shows everything else: its own cache of discovery leaves
// out what is stale, and does not say so; what asks for the group itself is told why.
func TestKubectlAndAnAggregatedServer(t *testing.T) {
	address := ownAddress(t)
	cluster := testcluster.Start(t)
	c := clientFor(t, cluster.REST(pki.Admin))
	e := &extended{t: t, extension: extensiontest.Start(t, address, cluster.PKI.FrontProxyCA())}
	e.register(c)
	c.says(extensionV1, "Passed")
	until := func(want string, args ...string) (shown string) {
		t.Helper()
		for end := time.Now().Add(time.Minute); time.Now().Before(end) && !strings.Contains(shown, want); {
			shown, _ = kubectl(cluster, args...)
		}
		require.Contains(t, shown, want)
		return shown
	}
	shown, code := kubectl(cluster, "get", "apiservices", "v1.", "v1.extension.example.com")
	require.Zero(t, code, shown)
	require.Regexp(t, `NAME +SERVICE +AVAILABLE +AGE\nv1\. +Local +True +\S+\nv1\.extension\.example\.com +default/extension +True +\S+\n`, shown)
	shown = until("sails", "api-resources", "--cached=false")
	require.Regexp(t, `sails +sl +extension\.example\.com/v1beta1 +true +Sail`, shown)
	shown, code = kubectl(cluster, "get", "--raw", sailsPath)
	require.Zero(t, code, shown)
	require.Contains(t, shown, "SailList")

	e.extension.Misbehave(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	c.patch("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/extension-1", mergePatch, `{"metadata":{"labels":{"again":"1"}}}`).ok()
	until("False (FailedDiscoveryCheck)", "get", "apiservices", "v1.extension.example.com")
	until("False (FailedDiscoveryCheck)", "get", "apiservices", "v1beta1.extension.example.com")
	shown = until("service unavailable: APIService v1.extension.example.com: FailedDiscoveryCheck", "get", "--raw", sailsPath)
	require.Contains(t, shown, "ServiceUnavailable")
	shown, code = kubectl(cluster, "api-resources", "--cached=false")
	require.Zero(t, code, shown)
	require.Contains(t, shown, "deployments")
	require.NotContains(t, shown, "sails")
	shown, code = kubectl(cluster, "get", "deployments")
	require.Zero(t, code, shown)
}
