package pki

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"text/template"
)

// kubeconfigText is the smallest kubeconfig: one cluster, one user, one context. Certificates and
// key are in the file, so that it can be copied to another machine.
var kubeconfigText = template.Must(template.New("kubeconfig").Funcs(template.FuncMap{
	"base64": base64.StdEncoding.EncodeToString,
}).Parse(`apiVersion: v1
kind: Config
clusters:
- name: kontiki
  cluster:
    server: {{.Server}}
    certificate-authority-data: {{base64 .CA}}
users:
- name: {{.User}}
  user:
    client-certificate-data: {{base64 .Pair.CertPEM}}
    client-key-data: {{base64 .Pair.KeyPEM}}
contexts:
- name: kontiki
  context:
    cluster: kontiki
    user: {{.User}}
current-context: kontiki
`))

// WriteKubeconfig writes a kubeconfig (mode 0600) with which pair calls the API server at the URL
// server. A file that says the same already is left alone.
func (p *PKI) WriteKubeconfig(path, server string, pair *KeyPair) error {
	return WriteKubeconfig(path, server, p.CA(), pair)
}

// WriteKubeconfig is the same for somebody who trusts the certificates ca, in PEM.
func WriteKubeconfig(path, server string, ca []byte, pair *KeyPair) error {
	var text bytes.Buffer
	err := kubeconfigText.Execute(&text, struct {
		Server, User string
		CA           []byte
		Pair         *KeyPair
	}{server, pair.leaf.Subject.CommonName, ca, pair})
	if err != nil {
		return err
	}
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, text.Bytes()) {
		return nil
	}
	if err := writeFile(path, text.Bytes()); err != nil {
		return fmt.Errorf("pki: write kubeconfig: %w", err)
	}
	return nil
}
