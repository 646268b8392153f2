package apiserver_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"kontiki/apiserver/aggregation/extensiontest"
	"kontiki/internal/etcdtest"
	"kontiki/internal/freeport"
	"kontiki/internal/pki"
	"kontiki/internal/testcluster"
)

// sampleVariable names a sample-apiserver of Kubernetes 1.37: `go get k8s.io/sample-apiserver@v0.37.2 && go build k8s.io/sample-apiserver`
// in an empty module. It takes minutes to build, so that no other test waits for it.
const sampleVariable = "KONTIKI_SAMPLE_APISERVER"

// TestSampleAPIServer puts Kubernetes' own example of an extension server behind Kontiki. It believes the front proxy that the
// ConfigMap names, and asks Kontiki about tokens and access, with no more rights than Kubernetes' documentation gives it.
func TestSampleAPIServer(t *testing.T) {
	program := os.Getenv(sampleVariable)
	if program == "" {
		t.Skipf("%s does not name a sample-apiserver", sampleVariable)
	}
	address := ownAddress(t)
	cluster := testcluster.Start(t)
	c := clientFor(t, cluster.REST(pki.Admin))
	kubeconfig := sampleUser(t, cluster, c)
	ca, port := startSample(t, program, address, kubeconfig)

	e := &extended{t: t, extension: &extensiontest.Server{CABundle: ca}}
	c.post("/api/v1/namespaces/default/services", `{"metadata":{"name":"extension"},"spec":{"ports":[{"name":"https","port":443}]}}`).ok()
	c.post("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", fmt.Sprintf(
		`{"metadata":{"name":"extension-1","labels":{"kubernetes.io/service-name":"extension"}},"addressType":"IPv4","ports":[{"name":"https","port":%d}],"endpoints":[{"addresses":[%q]}]}`, port, address)).ok()
	c.post(apiServicesPath, e.apiService("wardle.example.com", "v1alpha1", "10")).ok()
	c.says(apiServicesPath+"/v1alpha1.wardle.example.com", "Passed")

	const flunders = "/apis/wardle.example.com/v1alpha1/namespaces/default/flunders"
	events := c.watch(flunders + "?watch=true")
	flunder := `{"apiVersion":"wardle.example.com/v1alpha1","kind":"Flunder","metadata":{"name":"a"},"spec":{}}`
	require.Equal(t, 201, c.post(flunders, flunder).ok().code)
	require.Equal(t, "ADDED", c.next(events).Type)
	c.patch(flunders+"/a", mergePatch, `{"metadata":{"labels":{"x":"y"}}}`).ok()
	require.Equal(t, "MODIFIED", c.next(events).Type)
	require.Len(t, c.get(flunders).ok().object().Object["items"], 1)
	shown, code := kubectl(cluster, "get", "flunders", "a", "-o", "jsonpath={.metadata.labels.x}")
	require.Zero(t, code, shown)
	require.Regexp(t, `(?s)deprecated.*\ny$`, shown, "warnings go through")
	c.soon("/openapi/v3/apis/wardle.example.com/v1alpha1", 200)

	// The server asks who may: a user with every right at Kontiki's door, and none beyond it, is told so by either.
	c.get(flunders, "Impersonate-User", "jane").fails(403, "Forbidden", "")
	c.post(rbacPath+"clusterroles", `{"metadata":{"name":"flunders"},"rules":[{"apiGroups":["wardle.example.com"],"resources":["flunders"],"verbs":["list"]}]}`).ok()
	c.post(rbacPath+"clusterrolebindings", `{"metadata":{"name":"flunders"},"roleRef":{"kind":"ClusterRole","name":"flunders"},"subjects":[{"kind":"User","name":"jane"}]}`).ok()
	c.until(func() bool { return c.get(flunders, "Impersonate-User", "jane").code == 200 })
	c.delete(flunders+"/a", "").ok()
	require.Equal(t, "DELETED", c.next(events).Type)
}

// sampleUser is the kubeconfig of a user with the rights that an extension server needs.
func sampleUser(t *testing.T, cluster *testcluster.Cluster, c *client) string {
	config := personConfig(t, cluster, "sample")
	c.post(rbacPath+"clusterrolebindings", `{"metadata":{"name":"sample-delegator"},"roleRef":{"kind":"ClusterRole","name":"system:auth-delegator"},"subjects":[{"kind":"User","name":"sample"}]}`).ok()
	c.post(rbacPath+"namespaces/kube-system/rolebindings", `{"metadata":{"name":"sample-reader"},"roleRef":{"kind":"Role","name":"extension-apiserver-authentication-reader"},"subjects":[{"kind":"User","name":"sample"}]}`).ok()
	c.post(rbacPath+"clusterroles", `{"metadata":{"name":"sample"},"rules":[{"apiGroups":["","admissionregistration.k8s.io","flowcontrol.apiserver.k8s.io"],"resources":["namespaces","validatingadmissionpolicies","validatingadmissionpolicybindings","mutatingadmissionpolicies","mutatingadmissionpolicybindings","mutatingwebhookconfigurations","validatingwebhookconfigurations","flowschemas","prioritylevelconfigurations"],"verbs":["get","list","watch"]}]}`).ok()
	c.post(rbacPath+"clusterrolebindings", `{"metadata":{"name":"sample"},"roleRef":{"kind":"ClusterRole","name":"sample"},"subjects":[{"kind":"User","name":"sample"}]}`).ok()
	out := clientcmdapi.NewConfig()
	out.Clusters["k"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	out.AuthInfos["k"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	out.Contexts["k"] = &clientcmdapi.Context{Cluster: "k", AuthInfo: "k"}
	out.CurrentContext = "k"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*out, path))
	return path
}

// startSample starts the program over an etcd of its own.
func startSample(t *testing.T, program, address, kubeconfig string) (ca []byte, port int) {
	etcd := etcdtest.Start(t)
	certificate, ca := extensiontest.Certificate(t)
	dir := t.TempDir()
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	require.NoError(t, err)
	write := func(name, kind string, data []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600))
		return path
	}
	port, err = freeport.Take()
	require.NoError(t, err)
	command := exec.CommandContext(context.WithoutCancel(t.Context()), program, "--etcd-servers="+etcd.DirectURL(),
		"--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
		"--bind-address="+net.ParseIP(address).String(), "--secure-port="+strconv.Itoa(port), "--cert-dir="+dir,
		"--tls-cert-file="+write("tls.crt", "CERTIFICATE", certificate.Certificate[0]), "--tls-private-key-file="+write("tls.key", "PRIVATE KEY", key))
	log, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	defer log.Close()
	command.Stdout, command.Stderr = log, log
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if data, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("the sample server's last words: %s", data[max(0, len(data)-3000):])
		}
	})
	return ca, port
}
