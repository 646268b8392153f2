package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=sites.web.example.com,verbs=patch

// definition is ours.
const definition = "sites.web.example.com"

// certificateLife is long: nobody renews the certificate of an example. In a cluster cert-manager would.
const certificateLife = 365 * 24 * time.Hour

// trust writes into the definition where the webhook is and what its certificate is signed by. The rest of it stays
// with whoever installed it.
func trust(ctx context.Context, c client.Client, url string, bundle []byte) error {
	conversion := apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
		ConversionReviewVersions: []string{"v1"},
		ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: bundle},
	}}
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"conversion": conversion}})
	if err != nil {
		return err
	}
	patched := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: definition}}
	return c.Patch(ctx, patched, client.RawPatch(types.MergePatchType, body), client.FieldOwner(owner))
}

// ensureCertificate returns the certificate in dir, in PEM; one that signs itself is made if there is none.
func ensureCertificate(dir, host string) ([]byte, error) {
	file := filepath.Join(dir, "tls.crt")
	bundle, err := os.ReadFile(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return bundle, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: owner},
		NotBefore:    time.Now().Add(-time.Minute),
		NotAfter:     time.Now().Add(certificateLife),
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	// The key first: who finds the certificate finds both.
	if err := os.WriteFile(filepath.Join(dir, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600); err != nil {
		return nil, err
	}
	bundle = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
	return bundle, os.WriteFile(file, bundle, 0o644)
}
