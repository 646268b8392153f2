package controllers

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestNamespaceDeletion(t *testing.T) {
	c := startCluster(t)
	c.createNamespace("doomed")
	c.createConfigMap("doomed", "held", finalizer("test.kontiki/hold"))
	for i := range 20 {
		c.createConfigMap("doomed", fmt.Sprintf("cm-%d", i))
	}
	require.NoError(t, c.CoreV1().Namespaces().Delete(t.Context(), "doomed", metav1.DeleteOptions{}))
	_, err := c.CoreV1().ConfigMaps("doomed").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late"}}, metav1.CreateOptions{})
	require.True(t, apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), "%v", err)

	c.eventually("conditions that say what remains", func() (bool, string) {
		ns, err := c.CoreV1().Namespaces().Get(t.Context(), "doomed", metav1.GetOptions{})
		require.NoError(t, err)
		said := map[corev1.NamespaceConditionType]string{}
		for _, condition := range ns.Status.Conditions {
			if condition.Status == corev1.ConditionTrue {
				said[condition.Type] = condition.Message
			}
		}
		return said[corev1.NamespaceContentRemaining] == "Some resources are remaining: configmaps has 1 resource instances" &&
			said[corev1.NamespaceFinalizersRemaining] == "Some content in the namespace has finalizers remaining: test.kontiki/hold in 1 resource instances", fmt.Sprint(said)
	})
	c.clearFinalizers("doomed", "held")
	c.eventually("the namespace to go", func() (bool, string) {
		ns, err := c.CoreV1().Namespaces().Get(t.Context(), "doomed", metav1.GetOptions{})
		return apierrors.IsNotFound(err), fmt.Sprint(ns, err)
	})
}

func TestBootstrapObjectsAreRepaired(t *testing.T) {
	c := startCluster(t)
	ns := c.namespace
	published := func() (bool, string) {
		cm := c.configMap(ns, rootCAName)
		return cm != nil && len(cm.Data) == 1 && cm.Data[rootCAKey] == string(c.PKI.CA()), fmt.Sprint(cm)
	}
	c.eventually("the root CA", published)
	_, err := c.CoreV1().ConfigMaps(ns).Patch(t.Context(), rootCAName, types.MergePatchType, []byte(`{"data":{"ca.crt":"forged","x":"y"}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	c.eventually("the root CA after an edit", published)
	c.deleteConfigMap(rootCAName, metav1.DeletePropagationBackground)
	c.eventually("the root CA after a deletion", published)

	before, err := c.CoreV1().ServiceAccounts(ns).Get(t.Context(), "default", metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, c.CoreV1().ServiceAccounts(ns).Delete(t.Context(), "default", metav1.DeleteOptions{}))
	c.eventually("the default account", func() (bool, string) {
		after, err := c.CoreV1().ServiceAccounts(ns).Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil && after.UID != before.UID, fmt.Sprint(err)
	})
}
