package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// webhookManifest is a webhook in a pod of s3 behind a Service, which is asked about config maps. It has a certificate in it
// (1), its key (2), and what they are trusted by (1 again).
const webhookManifest = `
apiVersion: v1
kind: Secret
metadata: {name: webhook}
data: {tls.crt: %[1]s, tls.key: %[2]s}
---
apiVersion: v1
kind: Service
metadata: {name: webhook}
spec:
  selector: {app: webhook}
  ports: [{port: 443, targetPort: 8443}]
---
apiVersion: v1
kind: Pod
metadata: {name: webhook, labels: {app: webhook}}
spec:
  nodeName: s3
  terminationGracePeriodSeconds: 1
  volumes: [{name: certificate, secret: {secretName: webhook}}]
  containers:
  - name: webhook
    image: kontiki.local/hello:latest
    imagePullPolicy: Never
    args: [admit, ":8443", /certificate/tls.crt, /certificate/tls.key]
    volumeMounts: [{name: certificate, mountPath: /certificate}]
    readinessProbe: {tcpSocket: {port: 8443}, periodSeconds: 1}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: e2e}
webhooks:
- name: deny.e2e.kontiki.local
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  clientConfig: {caBundle: %[1]s, service: {namespace: default, name: webhook}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: default}}
`

// webhook has the API servers of all machines ask a webhook that runs on one of them, and takes it away again.
func (l *traffic) webhook() {
	certificate, key := selfSigned(l.t, "webhook.default.svc")
	l.eventually("the webhook", func() error { return l.apply(fmt.Sprintf(webhookManifest, certificate, key)) })
	l.must("wait", "--for=condition=Ready", "pod/webhook", "--timeout=1s")
	for _, machine := range []string{"s1", "s2", "s3"} {
		denied := l.file("denied", "kind: ConfigMap\napiVersion: v1\nmetadata: {generateName: denied-, labels: {deny: because-of-"+machine+"}}\n")
		l.eventually("denied by "+machine, func() error {
			out, err := l.kubectl(machine, "create", "-f", denied)
			if err == nil || !strings.Contains(out, `admission webhook "deny.e2e.kontiki.local" denied the request: because-of-`+machine) {
				return errors.New(out)
			}
			return nil
		})
		allowed := l.file("allowed", "kind: ConfigMap\napiVersion: v1\nmetadata: {generateName: allowed-}\n")
		l.must("create", "-f", allowed)
	}
	l.must("delete", "validatingwebhookconfiguration/e2e", "pod/webhook", "--ignore-not-found")
}

// selfSigned is a certificate for a name that is its own authority, and its key; both in PEM, in base64.
func selfSigned(t *testing.T, name string) (certificate, key string) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	encoded, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}))
}
