package controllers

import (
	"bytes"
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// SecretTokens makes the tokens that Secrets of type kubernetes.io/service-account-token are to have. A nil error means that the API server
// knows the token as the account's for as long as the Secret has it.
type SecretTokens interface {
	SecretToken(namespace, secret, account, accountUID string) (string, error)
}

// secretToken fills Secrets of type kubernetes.io/service-account-token, which people make to get a token that does not expire, and deletes
// those whose account has gone: another account of the same name shall not inherit them.
type secretToken struct {
	client   kubernetes.Interface
	secrets  corelisters.SecretLister
	accounts corelisters.ServiceAccountLister
	tokens   SecretTokens
	rootCA   func() []byte
}

func addSecretToken(m *manager) error {
	if m.config.Tokens == nil {
		return nil
	}
	client, err := m.client("secret-token")
	if err != nil {
		return err
	}
	secrets, accounts := m.accountTokens.Core().V1().Secrets(), m.shared.Core().V1().ServiceAccounts()
	s := &secretToken{client: client, secrets: secrets.Lister(), accounts: accounts.Lister(), tokens: m.config.Tokens, rootCA: m.config.RootCA}
	c := m.add("secret-token", 2, s)
	watch(c, secrets.Informer(), requestFor[*corev1.Secret])
	watch(c, accounts.Informer(), s.secretsOf)
	return nil
}

// secretsOf are the Secrets that name an account.
func (s *secretToken) secretsOf(account *corev1.ServiceAccount) (out []Request) {
	list, err := s.secrets.Secrets(account.Namespace).List(labels.Everything())
	if err != nil {
		return nil
	}
	for _, secret := range list {
		if secret.Annotations[corev1.ServiceAccountNameKey] == account.Name {
			out = append(out, requestFor(secret)...)
		}
	}
	return out
}

// Reconcile implements Reconciler.
func (s *secretToken) Reconcile(ctx context.Context, req Request) (Result, error) {
	secret, err := s.secrets.Secrets(req.Namespace).Get(req.Name)
	if err != nil || secret.DeletionTimestamp != nil {
		return Result{}, ignoreNotFound(err)
	}
	// The cache of accounts may be behind that of secrets, and a deletion cannot be taken back: so the account is read.
	name := secret.Annotations[corev1.ServiceAccountNameKey]
	account, err := s.accounts.ServiceAccounts(req.Namespace).Get(name)
	if err != nil {
		account, err = s.client.CoreV1().ServiceAccounts(req.Namespace).Get(ctx, name, metav1.GetOptions{})
	}
	uid := secret.Annotations[corev1.ServiceAccountUIDKey]
	switch {
	case apierrors.IsNotFound(err), err == nil && uid != "" && uid != string(account.UID):
		return Result{}, s.remove(ctx, secret)
	case err != nil:
		return Result{}, err
	}
	return Result{}, s.fill(ctx, secret, account)
}

func (s *secretToken) remove(ctx context.Context, secret *corev1.Secret) error {
	return ignoreNotFound(s.client.CoreV1().Secrets(secret.Namespace).Delete(ctx, secret.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &secret.UID, ResourceVersion: &secret.ResourceVersion},
	}))
}

func (s *secretToken) fill(ctx context.Context, secret *corev1.Secret, account *corev1.ServiceAccount) error {
	filled := secret.DeepCopy()
	if filled.Data == nil {
		filled.Data = map[string][]byte{}
	}
	if s.rootCA != nil {
		filled.Data[corev1.ServiceAccountRootCAKey] = s.rootCA()
	}
	filled.Data[corev1.ServiceAccountNamespaceKey] = []byte(secret.Namespace)
	if len(secret.Data[corev1.ServiceAccountTokenKey]) == 0 {
		token, err := s.tokens.SecretToken(secret.Namespace, secret.Name, account.Name, string(account.UID))
		if err != nil {
			return err
		}
		filled.Data[corev1.ServiceAccountTokenKey] = []byte(token)
	}
	if filled.Annotations[corev1.ServiceAccountUIDKey] == string(account.UID) && sameData(filled.Data, secret.Data) {
		return nil
	}
	filled.Annotations[corev1.ServiceAccountUIDKey] = string(account.UID)
	_, err := s.client.CoreV1().Secrets(secret.Namespace).Update(ctx, filled, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) {
		return nil // the change of somebody else brings it here again
	}
	return ignoreNotFound(err)
}

func sameData(a, b map[string][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for key, value := range a {
		if !bytes.Equal(value, b[key]) {
			return false
		}
	}
	return true
}
