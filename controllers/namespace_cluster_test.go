package controllers

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
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

// A pod that is created at once in a new namespace has a volume with a token and the authority, or is refused and may be
// tried again: there is never one without. What the volume names is there, and the token is good.
func TestAP47_BootstrapObjects(t *testing.T) {
	c := startCluster(t)
	const ns = "new"
	_, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{})
	require.NoError(t, err)
	var pod *corev1.Pod
	c.eventually("a pod", func() (bool, string) {
		pod, err = c.CoreV1().Pods(ns).Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "first"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}, metav1.CreateOptions{})
		if err != nil {
			require.True(t, apierrors.IsForbidden(err), "%v", err)
			require.ErrorContains(t, err, "serviceaccount")
		}
		return err == nil, fmt.Sprint(err)
	})
	require.Equal(t, "default", pod.Spec.ServiceAccountName)
	require.Len(t, pod.Spec.Volumes, 1)
	require.NotNil(t, pod.Spec.Volumes[0].Projected)
	sources := pod.Spec.Volumes[0].Projected.Sources
	require.Len(t, sources, 3)
	require.NotNil(t, sources[0].ServiceAccountToken)
	require.Equal(t, rootCAName, sources[1].ConfigMap.Name)
	require.Equal(t, pod.Spec.Volumes[0].Name, pod.Spec.Containers[0].VolumeMounts[0].Name)
	c.eventually("the root CA", func() (bool, string) {
		cm := c.configMap(ns, rootCAName)
		return cm != nil && cm.Data[rootCAKey] == string(c.PKI.CA()), fmt.Sprint(cm)
	})
	token, err := c.CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	review, err := c.AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token.Status.Token}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.True(t, review.Status.Authenticated, review.Status.Error)
	require.Equal(t, "system:serviceaccount:new:default", review.Status.User.Username)
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
