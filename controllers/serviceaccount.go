package controllers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// defaultServiceAccount is the account that pods get which name none.
const defaultServiceAccount = "default"

// serviceAccount keeps a ServiceAccount named default in every active namespace. A request names the namespace.
type serviceAccount struct {
	client     kubernetes.Interface
	namespaces corelisters.NamespaceLister
	accounts   corelisters.ServiceAccountLister
}

func addServiceAccount(m *manager) error {
	client, err := m.client("serviceaccount")
	if err != nil {
		return err
	}
	namespaces, accounts := m.shared.Core().V1().Namespaces(), m.shared.Core().V1().ServiceAccounts()
	c := m.add("serviceaccount", 2, &serviceAccount{client: client, namespaces: namespaces.Lister(), accounts: accounts.Lister()})
	watch(c, namespaces.Informer(), requestFor[*corev1.Namespace])
	watch(c, accounts.Informer(), func(account *corev1.ServiceAccount) []Request {
		if account.Name != defaultServiceAccount {
			return nil
		}
		return []Request{named(account.Namespace)}
	})
	return nil
}

func (s *serviceAccount) Reconcile(ctx context.Context, req Request) (Result, error) {
	if active, err := namespaceActive(s.namespaces, req.Name); !active || err != nil {
		return Result{}, err
	}
	if _, err := s.accounts.ServiceAccounts(req.Name).Get(defaultServiceAccount); !apierrors.IsNotFound(err) {
		return Result{}, err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: req.Name, Name: defaultServiceAccount}}
	_, err := s.client.CoreV1().ServiceAccounts(req.Name).Create(ctx, account, metav1.CreateOptions{})
	return Result{}, ignoreExistsOrTerminating(err)
}

func namespaceActive(namespaces corelisters.NamespaceLister, name string) (bool, error) {
	namespace, err := namespaces.Get(name)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && namespace.Status.Phase != corev1.NamespaceTerminating && namespace.DeletionTimestamp == nil, err
}

// ignoreExistsOrTerminating: the cache was behind, or the namespace has begun to go; neither is a failure.
func ignoreExistsOrTerminating(err error) error {
	if apierrors.IsAlreadyExists(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	return err
}
