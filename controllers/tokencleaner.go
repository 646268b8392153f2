package controllers

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"kontiki/internal/bootstraptoken"
)

// tokenCleaner deletes the Secrets of bootstrap tokens when these expire. One whose expiration cannot be read is good for
// nothing and left for people to look at.
type tokenCleaner struct {
	client  kubernetes.Interface
	secrets corelisters.SecretLister
	now     func() time.Time
}

func addTokenCleaner(m *manager) error {
	client, err := m.client("token-cleaner")
	if err != nil {
		return err
	}
	secrets := m.bootstrapTokens.Core().V1().Secrets()
	c := m.add("token-cleaner", 1, &tokenCleaner{client: client, secrets: secrets.Lister(), now: time.Now})
	watch(c, secrets.Informer(), requestFor[*corev1.Secret])
	return nil
}

func (c *tokenCleaner) Reconcile(ctx context.Context, req Request) (Result, error) {
	secret, err := c.secrets.Secrets(req.Namespace).Get(req.Name)
	if err != nil {
		return Result{}, ignoreNotFound(err)
	}
	_, spec, err := bootstraptoken.FromSecret(secret)
	if err != nil || spec.Expires.IsZero() {
		return Result{}, nil
	}
	if !spec.Over(c.now()) {
		return Result{RequeueAfter: spec.Expires.Sub(c.now())}, nil
	}
	err = c.client.CoreV1().Secrets(req.Namespace).Delete(ctx, req.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &secret.UID, ResourceVersion: &secret.ResourceVersion},
	})
	return Result{}, ignoreNotFound(err)
}
