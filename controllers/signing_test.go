package controllers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"kontiki/internal/bootstraptoken"
	"kontiki/internal/joining"
	"kontiki/internal/pki"
)

var (
	clientUsages  = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}
	servingUsages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}
)

func nodeSubject(name string) pkix.Name {
	return pkix.Name{CommonName: "system:node:" + name, Organization: []string{"system:nodes"}}
}

func requestOf(t *testing.T, signer string, usages []certificatesv1.KeyUsage, template x509.CertificateRequest) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &template, key)
	require.NoError(t, err)
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: signer, Usages: usages,
		},
	}
}

// settled waits until a request is decided and, if approved, issued or failed.
func (c *cluster) settled(as kubernetes.Interface, csr *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
	c.t.Helper()
	made, err := as.CertificatesV1().CertificateSigningRequests().Create(c.t.Context(), csr, metav1.CreateOptions{})
	require.NoError(c.t, err)
	return c.settles(made.Name)
}

func (c *cluster) settles(name string) (csr *certificatesv1.CertificateSigningRequest) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		var err error
		csr, err = c.CertificatesV1().CertificateSigningRequests().Get(c.t.Context(), name, metav1.GetOptions{})
		require.NoError(c.t, err)
		return len(csr.Status.Certificate) > 0 || hasCondition(csr, certificatesv1.CertificateFailed)
	}, 20*time.Second, 10*time.Millisecond)
	return csr
}

func (c *cluster) approve(csr *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
	c.t.Helper()
	requests := c.CertificatesV1().CertificateSigningRequests()
	made, err := requests.Create(c.t.Context(), csr, metav1.CreateOptions{})
	require.NoError(c.t, err)
	made.Status.Conditions = append(made.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"})
	_, err = requests.UpdateApproval(c.t.Context(), made.Name, made, metav1.UpdateOptions{})
	require.NoError(c.t, err)
	return c.settles(made.Name)
}

func (c *cluster) clientOf(config *rest.Config) kubernetes.Interface {
	c.t.Helper()
	client, err := kubernetes.NewForConfig(config)
	require.NoError(c.t, err)
	return client
}

func (c *cluster) tokenClient(spec bootstraptoken.Spec) (bootstraptoken.Token, kubernetes.Interface) {
	c.t.Helper()
	token, err := bootstraptoken.New()
	require.NoError(c.t, err)
	_, err = c.CoreV1().Secrets(bootstraptoken.Namespace).Create(c.t.Context(), bootstraptoken.ToSecret(token, spec), metav1.CreateOptions{})
	require.NoError(c.t, err)
	config := rest.AnonymousClientConfig(c.REST(pki.Admin))
	config.BearerToken = token.Bearer()
	return token, c.clientOf(config)
}

// A machine with a token gets a node's client certificate; the node itself gets it renewed, and one for serving.
func TestNodeCertificates(t *testing.T) {
	c := startCluster(t)
	_, machine := c.tokenClient(bootstraptoken.Spec{Authentication: true})
	csr := requestOf(t, certificatesv1.KubeAPIServerClientKubeletSignerName, clientUsages, x509.CertificateRequest{Subject: nodeSubject("w1")})
	csr.Spec.ExpirationSeconds = ptr.To(int32(3600))
	csr = c.settled(machine, csr)
	require.Equal(t, "AutoApproved", csr.Status.Conditions[0].Reason)
	leaf := c.verify(csr, x509.ExtKeyUsageClientAuth)
	require.Equal(t, "system:node:w1", leaf.Subject.CommonName)
	require.InDelta(t, time.Hour.Seconds(), time.Until(leaf.NotAfter).Seconds(), 60)

	w1 := c.clientOf(c.NodeREST("w1"))
	csr = c.settled(w1, requestOf(t, certificatesv1.KubeAPIServerClientKubeletSignerName, clientUsages, x509.CertificateRequest{Subject: nodeSubject("w1")}))
	require.Contains(t, csr.Status.Conditions[0].Message, "self kubelet client")
	csr = c.settled(w1, requestOf(t, certificatesv1.KubeletServingSignerName, servingUsages, x509.CertificateRequest{
		Subject: nodeSubject("w1"), DNSNames: []string{"w1"}, IPAddresses: []net.IP{net.IPv4(10, 0, 0, 7)}}))
	leaf = c.verify(csr, x509.ExtKeyUsageServerAuth)
	require.NoError(t, leaf.VerifyHostname("10.0.0.7"))
}

// verify returns a request's certificate, which the cluster's authority has signed.
func (c *cluster) verify(csr *certificatesv1.CertificateSigningRequest, usage x509.ExtKeyUsage) *x509.Certificate {
	c.t.Helper()
	block, _ := pem.Decode(csr.Status.Certificate)
	require.NotNil(c.t, block, csr.Status.Conditions)
	leaf, err := x509.ParseCertificate(block.Bytes)
	require.NoError(c.t, err)
	roots := x509.NewCertPool()
	require.True(c.t, roots.AppendCertsFromPEM(c.PKI.CA()))
	_, err = leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}})
	require.NoError(c.t, err)
	return leaf
}

// What nodes and machines may not have is left undecided, for people.
func TestRequestsLeftToPeople(t *testing.T) {
	c := startCluster(t)
	_, err := c.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w2"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = c.CoreV1().Nodes().Patch(t.Context(), "w2", types.MergePatchType,
		[]byte(`{"status":{"addresses":[{"type":"InternalIP","address":"10.0.0.2"}]}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	_, machine := c.tokenClient(bootstraptoken.Spec{Authentication: true})
	w1 := c.clientOf(c.NodeREST("w1"))
	serving := func(names []string, ip string, subject pkix.Name) *certificatesv1.CertificateSigningRequest {
		return requestOf(t, certificatesv1.KubeletServingSignerName, servingUsages, x509.CertificateRequest{
			Subject: subject, DNSNames: names, IPAddresses: []net.IP{net.ParseIP(ip)}})
	}
	left := map[string]string{}
	for name, ask := range map[string]struct {
		as  kubernetes.Interface
		csr *certificatesv1.CertificateSigningRequest
	}{
		"a node asks for another":   {w1, requestOf(t, certificatesv1.KubeAPIServerClientKubeletSignerName, clientUsages, x509.CertificateRequest{Subject: nodeSubject("w2")})},
		"a token asks for serving":  {machine, serving([]string{"w1"}, "10.0.0.1", nodeSubject("w1"))},
		"another node's address":    {w1, serving([]string{"w1"}, "10.0.0.2", nodeSubject("w1"))},
		"another node's name":       {w1, serving([]string{"w1", "w2"}, "10.0.0.1", nodeSubject("w1"))},
		"the API server's name":     {w1, serving([]string{"kubernetes.default.svc"}, "10.0.0.1", nodeSubject("w1"))},
		"a node of the API's name":  {c.clientOf(c.NodeREST("kubernetes.default.svc")), serving([]string{"kubernetes.default.svc"}, "10.0.0.9", nodeSubject("kubernetes.default.svc"))},
		"another node's serving":    {w1, serving([]string{"w2"}, "10.0.0.1", nodeSubject("w2"))},
		"the API's service":         {w1, serving([]string{"w1"}, "10.96.0.1", nodeSubject("w1"))},
		"everybody's address":       {w1, serving([]string{"w1"}, "127.0.0.1", nodeSubject("w1"))},
		"a client of another group": {machine, requestOf(t, certificatesv1.KubeAPIServerClientKubeletSignerName, clientUsages, x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:w1", Organization: []string{"system:nodes", "x"}}})},
		"a client with names":       {machine, requestOf(t, certificatesv1.KubeAPIServerClientKubeletSignerName, clientUsages, x509.CertificateRequest{Subject: nodeSubject("w1"), DNSNames: []string{"w1"}})},
		"a person":                  {machine, requestOf(t, certificatesv1.KubeAPIServerClientSignerName, clientUsages, x509.CertificateRequest{Subject: pkix.Name{CommonName: "jane"}})},
	} {
		made, err := ask.as.CertificatesV1().CertificateSigningRequests().Create(t.Context(), ask.csr, metav1.CreateOptions{})
		require.NoError(t, err, name)
		left[name] = made.Name
	}
	c.settled(machine, requestOf(t, certificatesv1.KubeAPIServerClientKubeletSignerName, clientUsages, x509.CertificateRequest{Subject: nodeSubject("w3")}))
	for name, csr := range left { // made before one that is decided by now
		notOurs := name == "a client of another group" || name == "a client with names" || name == "a person"
		require.Eventually(t, func() bool { // it says why
			found, err := c.CertificatesV1().CertificateSigningRequests().Get(t.Context(), csr, metav1.GetOptions{})
			require.NoError(t, err)
			require.False(t, hasCondition(found, certificatesv1.CertificateApproved) || hasCondition(found, certificatesv1.CertificateDenied), name)
			return notOurs && len(found.Status.Conditions) == 0 || hasCondition(found, joining.LeftToPeople)
		}, time.Minute, 20*time.Millisecond, name)
	}
}

// What people have approved is signed if it is what the signer signs, and otherwise fails for good.
func TestSigners(t *testing.T) {
	c := startCluster(t)
	jane := pkix.Name{CommonName: "jane", Organization: []string{"dev"}}
	csr := c.approve(requestOf(t, certificatesv1.KubeAPIServerClientSignerName, clientUsages, x509.CertificateRequest{Subject: jane}))
	require.Equal(t, []string{"dev"}, c.verify(csr, x509.ExtKeyUsageClientAuth).Subject.Organization)
	csr = c.approve(requestOf(t, "kubernetes.io/legacy-unknown", servingUsages, x509.CertificateRequest{Subject: jane, DNSNames: []string{"x.example"}}))
	require.NoError(t, c.verify(csr, x509.ExtKeyUsageServerAuth).VerifyHostname("x.example"))
	for name, wrong := range map[string]*certificatesv1.CertificateSigningRequest{
		`usage "server auth" is not allowed`: requestOf(t, certificatesv1.KubeAPIServerClientSignerName, append(servingUsages, clientUsages[1]), x509.CertificateRequest{Subject: jane}),
		`the organization must be`:           requestOf(t, certificatesv1.KubeletServingSignerName, servingUsages, x509.CertificateRequest{Subject: jane, DNSNames: []string{"x"}}),
		`at least one DNS name`:              requestOf(t, certificatesv1.KubeletServingSignerName, servingUsages, x509.CertificateRequest{Subject: nodeSubject("w")}),
		`usage "client auth" is required`:    requestOf(t, certificatesv1.KubeAPIServerClientSignerName, clientUsages[:1], x509.CertificateRequest{Subject: jane}),
		`usage "cert sign" is not allowed`:   requestOf(t, "kubernetes.io/legacy-unknown", []certificatesv1.KeyUsage{certificatesv1.UsageCertSign}, x509.CertificateRequest{Subject: jane}),
	} {
		csr := c.approve(wrong)
		require.Empty(t, csr.Status.Certificate, name)
		last := csr.Status.Conditions[len(csr.Status.Conditions)-1]
		require.Equal(t, "SignerValidationFailure", last.Reason)
		require.Contains(t, last.Message, name)
	}
}

func TestEndOfRequests(t *testing.T) {
	made := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(made)}}
	require.Equal(t, made.Add(24*time.Hour), endOf(csr))
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
		Type: certificatesv1.CertificateApproved, LastUpdateTime: metav1.NewTime(made.Add(time.Minute))}}
	require.Equal(t, made.Add(time.Hour+time.Minute), endOf(csr))
}

// An expired token's Secret goes; others stay.
func TestTokenCleaner(t *testing.T) {
	c := startCluster(t)
	lasting, _ := c.tokenClient(bootstraptoken.Spec{Authentication: true, Expires: time.Now().Add(time.Hour)})
	unending, _ := c.tokenClient(bootstraptoken.Spec{Authentication: true})
	over, _ := c.tokenClient(bootstraptoken.Spec{Authentication: true, Expires: time.Now().Add(2 * time.Second)})
	gone := func(token bootstraptoken.Token) bool {
		_, err := c.CoreV1().Secrets(bootstraptoken.Namespace).Get(t.Context(), token.SecretName(), metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}
	require.Eventually(t, func() bool { return gone(over) }, time.Minute, 20*time.Millisecond)
	require.False(t, gone(lasting))
	require.False(t, gone(unending))
}
