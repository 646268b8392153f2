package controllers

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

func (c *cluster) createConfigMap(namespace, name string, change ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	c.t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, f := range change {
		f(cm)
	}
	created, err := c.CoreV1().ConfigMaps(namespace).Create(c.t.Context(), cm, metav1.CreateOptions{})
	require.NoError(c.t, err)
	return created
}

func ownedBy(refs ...metav1.OwnerReference) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) { cm.OwnerReferences = refs }
}

func finalizer(name string) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) { cm.Finalizers = []string{name} }
}

func refTo(cm *corev1.ConfigMap) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: cm.Name, UID: cm.UID, BlockOwnerDeletion: ptr.To(true)}
}

// configMap returns nil for one that does not exist.
func (c *cluster) configMap(namespace, name string) *corev1.ConfigMap {
	c.t.Helper()
	cm, err := c.CoreV1().ConfigMaps(namespace).Get(c.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(c.t, err)
	return cm
}

func (c *cluster) deleteConfigMap(name string, policy metav1.DeletionPropagation) {
	c.t.Helper()
	require.NoError(c.t, c.CoreV1().ConfigMaps(c.namespace).Delete(c.t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &policy}))
}

func (c *cluster) clearFinalizers(namespace, name string) {
	c.t.Helper()
	_, err := c.CoreV1().ConfigMaps(namespace).Patch(c.t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(c.t, err)
}

func (c *cluster) goes(namespace, name string) {
	c.t.Helper()
	c.eventually(name+" to go", func() (bool, string) {
		cm := c.configMap(namespace, name)
		return cm == nil, fmt.Sprint(cm)
	})
}

func TestGarbageCollection(t *testing.T) {
	c := startCluster(t)
	ns := c.namespace

	t.Run("background, down a chain, with a second owner that keeps", func(t *testing.T) {
		top := c.createConfigMap(ns, "top")
		keeper := c.createConfigMap(ns, "keeper")
		middle := c.createConfigMap(ns, "middle", ownedBy(refTo(top)))
		c.createConfigMap(ns, "leaf", ownedBy(refTo(middle)))
		c.createConfigMap(ns, "kept", ownedBy(refTo(top), refTo(keeper)))
		c.deleteConfigMap("top", metav1.DeletePropagationBackground)
		require.Nil(t, c.configMap(ns, "top"))
		c.goes(ns, "middle")
		c.goes(ns, "leaf")
		c.eventually("the useless reference to go", func() (bool, string) {
			refs := c.configMap(ns, "kept").OwnerReferences
			return len(refs) == 1 && refs[0].UID == keeper.UID, fmt.Sprint(refs)
		})
	})

	t.Run("an owner that never was, or is another by now", func(t *testing.T) {
		c.createConfigMap(ns, "reborn")
		c.createConfigMap(ns, "of-nobody", ownedBy(metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "never", UID: "no-such-uid"}))
		c.createConfigMap(ns, "of-the-former", ownedBy(metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "reborn", UID: "the-former-uid"}))
		c.goes(ns, "of-nobody")
		c.goes(ns, "of-the-former")
		require.NotNil(t, c.configMap(ns, "reborn"))
	})

	t.Run("a kind that nobody serves is no proof of absence", func(t *testing.T) {
		stranger := c.createConfigMap(ns, "stranger", ownedBy(metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Unknown", Name: "x", UID: "some-uid"}))
		// Collected later than this one, which is created after it and has no owner either.
		c.createConfigMap(ns, "marker", ownedBy(metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "never", UID: "no-such-uid"}))
		c.goes(ns, "marker")
		require.Equal(t, stranger.UID, c.configMap(ns, "stranger").UID)
	})

	t.Run("a cluster-scoped owner", func(t *testing.T) {
		node, err := c.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		c.createConfigMap(ns, "of-the-node", ownedBy(metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}))
		require.NoError(t, c.CoreV1().Nodes().Delete(t.Context(), "owner", metav1.DeleteOptions{}))
		c.goes(ns, "of-the-node")
	})

	t.Run("foreground waits for what blocks", func(t *testing.T) {
		owner := c.createConfigMap(ns, "fg")
		c.createConfigMap(ns, "fg-held", ownedBy(refTo(owner)), finalizer("test.kontiki/hold"))
		c.createConfigMap(ns, "fg-free", ownedBy(refTo(owner)))
		c.deleteConfigMap("fg", metav1.DeletePropagationForeground)
		c.goes(ns, "fg-free")
		c.eventually("the held one to be deleted", func() (bool, string) {
			return c.configMap(ns, "fg-held").DeletionTimestamp != nil, ""
		})
		require.Equal(t, []string{metav1.FinalizerDeleteDependents}, c.configMap(ns, "fg").Finalizers)
		c.clearFinalizers(ns, "fg-held")
		c.goes(ns, "fg")
	})

	t.Run("foreground around a circle ends", func(t *testing.T) {
		a := c.createConfigMap(ns, "circle-a")
		b := c.createConfigMap(ns, "circle-b", ownedBy(refTo(a)))
		a.OwnerReferences = []metav1.OwnerReference{refTo(b)}
		_, err := c.CoreV1().ConfigMaps(ns).Update(t.Context(), a, metav1.UpdateOptions{})
		require.NoError(t, err)
		c.deleteConfigMap("circle-a", metav1.DeletePropagationForeground)
		c.goes(ns, "circle-a")
		c.goes(ns, "circle-b")
	})

	t.Run("orphan frees the dependents first", func(t *testing.T) {
		owner := c.createConfigMap(ns, "parent")
		c.createConfigMap(ns, "child", ownedBy(refTo(owner)))
		c.deleteConfigMap("parent", metav1.DeletePropagationOrphan)
		c.goes(ns, "parent")
		require.Empty(t, c.configMap(ns, "child").OwnerReferences)
	})
}
