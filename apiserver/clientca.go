package apiserver

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// In namespace kube-system, the ConfigMap in which API servers that extend this one, metrics-server for example, find out
// whose client certificates they may trust. The role extension-apiserver-authentication-reader lets them read it.
//
// Not yet: the front proxy (requestheader-*), which comes with aggregation.
const (
	trustConfigMap = "extension-apiserver-authentication"
	clientCAKey    = "client-ca-file"
)

// bootstrapTrust publishes the server's client CA. Others that are there stay: certificates they have signed may still be in use.
func (s *Server) bootstrapTrust(ctx context.Context) error {
	if s.config.ClientCA == nil {
		return nil
	}
	ca := string(s.config.ClientCA())
	published := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: trustConfigMap, Namespace: metav1.NamespaceSystem},
		Data:       map[string]string{clientCAKey: ca},
	}
	return s.ensure(ctx, metav1.NamespaceSystem, published, func(present runtime.Object) {
		c := present.(*corev1.ConfigMap)
		if c.Data == nil {
			c.Data = map[string]string{}
		}
		for one := range strings.SplitAfterSeq(ca, pemEnd) { // one authority after the other, each once
			if !strings.Contains(c.Data[clientCAKey], one) {
				c.Data[clientCAKey] += one
			}
		}
	})
}

// pemEnd ends a certificate (RFC 7468, 3).
const pemEnd = "-----END CERTIFICATE-----\n"
