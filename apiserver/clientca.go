package apiserver

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// In namespace kube-system, the ConfigMap in which API servers that extend this one, metrics-server for example, find out
// whose client certificates they may trust, and which headers to believe of the front proxy. The role
// extension-apiserver-authentication-reader lets them read it.
const (
	trustConfigMap = "extension-apiserver-authentication"
	clientCAKey    = "client-ca-file"
	proxyCAKey     = "requestheader-client-ca-file"
	proxyNamesKey  = "requestheader-allowed-names"
)

// proxyHeaders are the headers that package aggregation sends, as servers built on k8s.io/apiserver read them (lists in JSON).
var proxyHeaders = map[string]string{
	"requestheader-username-headers":     "X-Remote-User",
	"requestheader-uid-headers":          "X-Remote-Uid",
	"requestheader-group-headers":        "X-Remote-Group",
	"requestheader-extra-headers-prefix": "X-Remote-Extra-",
}

// bootstrapTrust publishes the server's client CA and its front proxy. Others that are there stay: certificates they have signed may
// still be in use. A front proxy in front of this server (AccessConfig.FrontProxy) is nobody's business but this server's.
func (s *Server) bootstrapTrust(ctx context.Context) error {
	if s.config.ClientCA == nil {
		return nil
	}
	published := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: trustConfigMap, Namespace: metav1.NamespaceSystem}}
	s.fitTrust(published)
	return s.ensure(ctx, metav1.NamespaceSystem, published, s.fitTrust)
}

// fitTrust adds to the ConfigMap what it lacks.
func (s *Server) fitTrust(obj runtime.Object) {
	c := obj.(*corev1.ConfigMap)
	if c.Data == nil {
		c.Data = map[string]string{}
	}
	addAuthorities(c.Data, clientCAKey, s.config.ClientCA())
	if s.config.FrontProxyCA == nil {
		return
	}
	addAuthorities(c.Data, proxyCAKey, s.config.FrontProxyCA())
	addName(c.Data, proxyNamesKey, s.config.FrontProxyName)
	for key, header := range proxyHeaders {
		addName(c.Data, key, header)
	}
}

// addAuthorities adds one authority after the other, each once.
func addAuthorities(data map[string]string, key string, authorities []byte) {
	for one := range strings.SplitAfterSeq(string(authorities), pemEnd) {
		if !strings.Contains(data[key], one) {
			data[key] += one
		}
	}
}

// addName adds a name to a list in JSON. One that cannot be read is replaced.
func addName(data map[string]string, key, name string) {
	var names []string
	_ = json.Unmarshal([]byte(data[key]), &names)
	if slices.Contains(names, name) {
		return
	}
	text, err := json.Marshal(append(names, name))
	if err != nil {
		panic("apiserver: a list of names cannot be written as JSON: " + err.Error())
	}
	data[key] = string(text)
}

// pemEnd ends a certificate (RFC 7468, 3).
const pemEnd = "-----END CERTIFICATE-----\n"
