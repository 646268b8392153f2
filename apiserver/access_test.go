package apiserver_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"kontiki/internal/pki"
	"kontiki/internal/testcluster"
)

// Without a certificate: health and version, and nothing else, not even what exists.
func TestAnonymous(t *testing.T) {
	cluster, _ := start(t)
	c := clientFor(t, rest.AnonymousClientConfig(cluster.REST(pki.Admin)))
	for _, path := range []string{"/livez", "/readyz", "/healthz", "/version", "/readyz?verbose", "/readyz/store"} {
		require.Equal(t, 200, c.get(path).code, path)
	}
	for _, path := range []string{"/", "/api", "/apis", "/metrics", "/openapi/v3", maps, "/nowhere", "/api/v1/nowhere"} {
		c.get(path).fails(401, metav1.StatusReasonUnauthorized, "Unauthorized")
	}
	c.do("GET", maps, "", "Authorization", "Bearer x").fails(401, metav1.StatusReasonUnauthorized, "")
	c.post(maps, configMap("c", "")).fails(401, metav1.StatusReasonUnauthorized, "")
}

// A certificate of the cluster's authority that means nobody in particular may do nothing.
func TestUnknownUser(t *testing.T) {
	cluster, _ := start(t)
	c := personOf(t, cluster, "jane", "dev")
	c.get(maps).fails(403, metav1.StatusReasonForbidden, `configmaps is forbidden: User "jane" cannot list resource "configmaps" in API group "" in the namespace "default"`)
	c.get("/api/v1/nodes/n").fails(403, metav1.StatusReasonForbidden, `nodes "n" is forbidden: User "jane" cannot get resource "nodes" in API group "" at the cluster scope`)
	c.patch(deployments+"/d/scale", mergePatch, "{}").fails(403, metav1.StatusReasonForbidden,
		`deployments.apps "d" is forbidden: User "jane" cannot patch resource "deployments/scale" in API group "apps" in the namespace "default"`)
	c.get("/metrics%0a%22").fails(403, metav1.StatusReasonForbidden, `forbidden: User "jane" cannot get path "/metrics\n\""`)
	c.get("/metrics").fails(403, metav1.StatusReasonForbidden, `User "jane" cannot get path "/metrics"`)
}

// personOf is a client with a certificate of the cluster's authority.
func personOf(t *testing.T, cluster *testcluster.Cluster, name string, groups ...string) *client {
	t.Helper()
	return clientFor(t, personConfig(t, cluster, name, groups...))
}

func personConfig(t *testing.T, cluster *testcluster.Cluster, name string, groups ...string) *rest.Config {
	t.Helper()
	config := cluster.REST(pki.Admin)
	config.CertData, config.KeyData = issue(t, cluster.Dir+"/pki/ca.crt", cluster.Dir+"/pki/ca.key", pkix.Name{CommonName: name, Organization: groups})
	return config
}

// schedulerWithAllRights is another user than c's who may do everything.
func schedulerWithAllRights(t *testing.T, cluster *testcluster.Cluster, c *client) *client {
	t.Helper()
	c.post(rbacPath+"clusterrolebindings", `{"metadata":{"name":"scheduler"},"roleRef":{"kind":"ClusterRole","name":"cluster-admin"},
		"subjects":[{"kind":"User","name":"system:kube-scheduler"}]}`).ok()
	scheduler := clientFor(t, cluster.REST(pki.Scheduler))
	require.Eventually(t, func() bool { return scheduler.get(maps).code == 200 }, time.Minute, time.Millisecond)
	return scheduler
}

// A certificate of another authority does not get through the handshake.
func TestForeignCertificate(t *testing.T) {
	cluster, _ := start(t)
	config := cluster.REST(pki.Admin)
	pair := selfSigned(t, pkix.Name{CommonName: "kubernetes-admin", Organization: []string{"system:masters"}})
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cluster.PKI.CA())
	// Go's client does not show a certificate that the server would not take, unless it is forced to.
	show := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	httpClient := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, GetClientCertificate: show}}}
	_, err := httpClient.Get(config.Host + "/livez")
	require.ErrorContains(t, err, "tls:")
}

// There is no plain HTTP.
func TestPlainHTTP(t *testing.T) {
	_, c := start(t)
	resp, err := http.Get("http" + strings.TrimPrefix(c.base, "https") + "/livez")
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
}

func TestMetricsAndRoot(t *testing.T) {
	_, c := start(t)
	c.get(maps).ok()
	require.Contains(t, string(c.get("/metrics").ok().body), `apiserver_request_total{code="200",group="",resource="configmaps",verb="list"} 1`)
	require.Contains(t, string(c.get("/").ok().body), "/api/v1")
	verbose := string(c.get("/readyz?verbose").ok().body)
	require.Contains(t, verbose, "[+]store ok")
	require.Contains(t, verbose, "readyz check passed")
	c.get("/readyz/nonsense").fails(404, metav1.StatusReasonNotFound, "")
	require.NotEmpty(t, c.get(maps).header.Get("Audit-Id"))
	require.Equal(t, "mine", c.get(maps, "Audit-Id", "mine").header.Get("Audit-Id"))
}

func selfSigned(t *testing.T, subject pkix.Name) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := leaf(subject)
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func leaf(subject pkix.Name) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: subject,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

// issue signs a client certificate with the cluster's authority.
func issue(t *testing.T, caFile, caKeyFile string, subject pkix.Name) (certificate, key []byte) {
	t.Helper()
	authority, err := tls.LoadX509KeyPair(caFile, caKeyFile)
	require.NoError(t, err)
	parent, err := x509.ParseCertificate(authority.Certificate[0])
	require.NoError(t, err)
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, leaf(subject), parent, private.Public(), authority.PrivateKey)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
}
