package controllers

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
)

// replicaKind is what differs between the kinds that keep a number of pods. Their objects are seen as ReplicaSets, which have
// all that the others have.
type replicaKind struct {
	kind              schema.GroupVersionKind
	countsTerminating bool // in its status

	get    func(namespace, name string) (*appsv1.ReplicaSet, error) // from the cache
	list   func(namespace string) ([]*appsv1.ReplicaSet, error)     // from the cache
	family func(rs *appsv1.ReplicaSet) ([]*appsv1.ReplicaSet, error)

	reread      func(ctx context.Context, namespace, name string) (metav1.Object, error)
	writeStatus func(ctx context.Context, rs *appsv1.ReplicaSet) error
}

var replicaSetKind = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")

// replicaSets are the kind itself. A family of them has one controller: a Deployment in the middle of a rollout.
func replicaSets(m *manager, client kubernetes.Interface) replicaKind {
	sets := m.shared.Apps().V1().ReplicaSets()
	lister, index := sets.Lister(), sets.Informer().GetIndexer()
	return replicaKind{
		kind: replicaSetKind, countsTerminating: true,
		get: func(namespace, name string) (*appsv1.ReplicaSet, error) {
			return lister.ReplicaSets(namespace).Get(name)
		},
		list: func(namespace string) ([]*appsv1.ReplicaSet, error) {
			return lister.ReplicaSets(namespace).List(labels.Everything())
		},
		family: func(rs *appsv1.ReplicaSet) ([]*appsv1.ReplicaSet, error) {
			if owner := metav1.GetControllerOfNoCopy(rs); owner != nil {
				return indexed[*appsv1.ReplicaSet](index, byController, string(owner.UID))
			}
			return []*appsv1.ReplicaSet{rs}, nil
		},
		reread: func(ctx context.Context, namespace, name string) (metav1.Object, error) {
			return client.AppsV1().ReplicaSets(namespace).Get(ctx, name, metav1.GetOptions{})
		},
		writeStatus: func(ctx context.Context, rs *appsv1.ReplicaSet) error {
			_, err := client.AppsV1().ReplicaSets(rs.Namespace).UpdateStatus(ctx, rs, metav1.UpdateOptions{})
			return err
		},
	}
}
