package controllers

import (
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"kontiki/internal/pki"
)

// A Secret of the type gets a token that is the account's, until the Secret or the account goes.
func TestSecretToken(t *testing.T) {
	c := startCluster(t)
	ctx := t.Context()
	account, err := c.CoreV1().ServiceAccounts("test").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	fill := func(name string) (token string) {
		t.Helper()
		_, err := c.CoreV1().Secrets("test").Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{corev1.ServiceAccountNameKey: "robot"}},
			Type:       corev1.SecretTypeServiceAccountToken,
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		c.eventually("a token in the Secret", func() (bool, string) {
			secret, err := c.CoreV1().Secrets("test").Get(ctx, name, metav1.GetOptions{})
			require.NoError(t, err)
			token = string(secret.Data[corev1.ServiceAccountTokenKey])
			if token != "" {
				require.Equal(t, c.PKI.CA(), secret.Data[corev1.ServiceAccountRootCAKey])
				require.Equal(t, "test", string(secret.Data[corev1.ServiceAccountNamespaceKey]))
				require.Equal(t, string(account.UID), secret.Annotations[corev1.ServiceAccountUIDKey])
			}
			return token != "", "no token yet"
		})
		return token
	}
	whoami := func(token string) (string, error) {
		config := rest.AnonymousClientConfig(c.REST(pki.Admin))
		config.BearerToken = token
		client, err := kubernetes.NewForConfig(config)
		require.NoError(t, err)
		review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		return review.Status.UserInfo.Username, err
	}
	first, second := fill("first"), fill("second")
	for _, token := range []string{first, second} {
		name, err := whoami(token)
		require.NoError(t, err)
		require.Equal(t, "system:serviceaccount:test:robot", name)
	}
	require.NoError(t, c.CoreV1().Secrets("test").Delete(ctx, "first", metav1.DeleteOptions{}))
	refused := func(token string) {
		t.Helper()
		c.eventually("401", func() (bool, string) {
			name, err := whoami(token)
			return apierrors.IsUnauthorized(err), name
		})
	}
	refused(first)

	// Another Secret of the same name does not bring the token back.
	require.NotEqual(t, first, fill("first")) // the claims are the same, signatures differ
	refused(first)

	_, err = c.CoreV1().Secrets("test").Patch(ctx, "second", "application/merge-patch+json", []byte(`{"metadata":{"labels":{"kubernetes.io/legacy-token-invalid-since":"2026-11-30"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	refused(second)

	require.NoError(t, c.CoreV1().ServiceAccounts("test").Delete(ctx, "robot", metav1.DeleteOptions{}))
	c.eventually("Secrets of the account gone", func() (bool, string) {
		list, err := c.CoreV1().Secrets("test").List(ctx, metav1.ListOptions{})
		require.NoError(t, err)
		return len(list.Items) == 0, list.String()
	})
}
