package ingress

import (
	"crypto/tls"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// TestCertificatesAreForgotten: key pairs of Secrets that no Ingress names any more are not kept.
func TestCertificatesAreForgotten(t *testing.T) {
	secrets := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	now := &table{}
	c := &certificates{table: func() *table { return now }, secrets: corelisters.NewSecretLister(secrets)}
	for i := range 5 {
		name := fmt.Sprint("s", i)
		require.NoError(t, secrets.Add(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Type: corev1.SecretTypeTLS, Data: pair(t, "a.example"),
		}))
		now = &table{secrets: map[string]string{"always.example": "ns/s0", "a.example": "ns/" + name}}
		for _, host := range []string{"always.example", "a.example"} {
			_, err := c.get(&tls.ClientHelloInfo{ServerName: host})
			require.NoError(t, err)
		}
		require.LessOrEqual(t, len(c.parsed), 2)
		require.Contains(t, c.parsed, "ns/s0")
	}
}
