package testcluster

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func TestRestartKeepsEverything(t *testing.T) {
	c := Start(t)
	maps := c.Admin().CoreV1().ConfigMaps("default")
	made, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	c.Restart()
	found, err := c.Admin().CoreV1().ConfigMaps("default").Get(t.Context(), "m", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, made, found)
}

func TestIdentities(t *testing.T) {
	c := Start(t)
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	require.NoError(t, err)
	list := func(config *rest.Config) error {
		client, err := kubernetes.NewForConfig(config)
		require.NoError(t, err)
		_, err = client.CoreV1().Services("").List(t.Context(), metav1.ListOptions{})
		return err
	}
	require.NoError(t, list(config))
	require.NoError(t, list(c.NodeREST("n1")))
	require.True(t, apierrors.IsUnauthorized(list(rest.AnonymousClientConfig(config))) ||
		apierrors.IsForbidden(list(rest.AnonymousClientConfig(config))))
}
