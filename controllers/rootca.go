package controllers

import (
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
)

const (
	rootCAName = "kube-root-ca.crt"
	rootCAKey  = "ca.crt"
	// rootCADescription says to whoever finds the ConfigMap what it is for; upstream publishes one with the same key.
	rootCADescriptionKey = "kubernetes.io/description"
	rootCADescription    = "The CA that signed the API server's certificate, for clients inside the cluster (kubernetes.default.svc). " +
		"It says nothing about other certificates."
)

// rootCALook is how often a namespace's copy is compared with the CA, which changes when it is renewed or replaced.
const rootCALook = time.Minute

// rootCA publishes the cluster's CA as ConfigMap kube-root-ca.crt in every active namespace and repairs it when it is
// edited or deleted: the token volume of every pod projects it. A request names the namespace.
type rootCA struct {
	client     kubernetes.Interface
	namespaces corelisters.NamespaceLister
	configMaps corelisters.ConfigMapLister
	pem        func() []byte
}

func addRootCA(m *manager) error {
	if m.config.RootCA == nil {
		return nil
	}
	client, err := m.client("root-ca")
	if err != nil {
		return err
	}
	namespaces, configMaps := m.shared.Core().V1().Namespaces(), m.rootCAs.Core().V1().ConfigMaps()
	c := m.add("root-ca", 2, &rootCA{
		client: client, namespaces: namespaces.Lister(), configMaps: configMaps.Lister(), pem: m.config.RootCA,
	})
	watch(c, namespaces.Informer(), requestFor[*corev1.Namespace])
	watch(c, configMaps.Informer(), func(cm *corev1.ConfigMap) []Request { return []Request{named(cm.Namespace)} })
	return nil
}

func (r *rootCA) Reconcile(ctx context.Context, req Request) (Result, error) {
	if active, err := namespaceActive(r.namespaces, req.Name); !active || err != nil {
		return Result{}, err
	}
	data := map[string]string{rootCAKey: string(r.pem())}
	current, err := r.configMaps.ConfigMaps(req.Name).Get(rootCAName)
	if apierrors.IsNotFound(err) {
		_, err := r.client.CoreV1().ConfigMaps(req.Name).Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: req.Name, Name: rootCAName, Annotations: map[string]string{rootCADescriptionKey: rootCADescription},
			},
			Data: data,
		}, metav1.CreateOptions{})
		return Result{RequeueAfter: rootCALook}, ignoreExistsOrTerminating(err)
	}
	if err != nil || maps.Equal(current.Data, data) && len(current.BinaryData) == 0 {
		return Result{RequeueAfter: rootCALook}, err
	}
	repaired := current.DeepCopy()
	repaired.Data, repaired.BinaryData = data, nil
	_, err = r.client.CoreV1().ConfigMaps(req.Name).Update(ctx, repaired, metav1.UpdateOptions{})
	return Result{RequeueAfter: rootCALook}, err
}
