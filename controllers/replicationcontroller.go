package controllers

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
)

// ReplicationControllers are ReplicaSets' elder kind: a selector of labels alone, and nothing that rolls them out. They are
// reconciled by the same code, as ReplicaSets with their name, uid and kind.

var replicationControllerKind = corev1.SchemeGroupVersion.WithKind("ReplicationController")

func addReplicationController(m *manager) error {
	c, err := addReplicas(m, "replicationcontroller", func(client kubernetes.Interface) replicaKind { return replicationControllers(m, client) })
	if err == nil {
		watch(c, m.shared.Core().V1().ReplicationControllers().Informer(), requestFor[*corev1.ReplicationController])
	}
	return err
}

// replicationControllers are the kind. Each is a family of its own.
func replicationControllers(m *manager, client kubernetes.Interface) replicaKind {
	lister := m.shared.Core().V1().ReplicationControllers().Lister()
	return replicaKind{
		kind: replicationControllerKind,
		get: func(namespace, name string) (*appsv1.ReplicaSet, error) {
			rc, err := lister.ReplicationControllers(namespace).Get(name)
			if err != nil {
				return nil, err
			}
			return asReplicaSet(rc), nil
		},
		list: func(namespace string) ([]*appsv1.ReplicaSet, error) {
			all, err := lister.ReplicationControllers(namespace).List(labels.Everything())
			views := make([]*appsv1.ReplicaSet, len(all))
			for i, rc := range all {
				views[i] = asReplicaSet(rc)
			}
			return views, err
		},
		family: func(rs *appsv1.ReplicaSet) ([]*appsv1.ReplicaSet, error) { return []*appsv1.ReplicaSet{rs}, nil },
		reread: func(ctx context.Context, namespace, name string) (metav1.Object, error) {
			return client.CoreV1().ReplicationControllers(namespace).Get(ctx, name, metav1.GetOptions{})
		},
		writeStatus: func(ctx context.Context, rs *appsv1.ReplicaSet) error {
			rc := &corev1.ReplicationController{ObjectMeta: rs.ObjectMeta, Status: statusOfReplicationController(rs.Status)}
			_, err := client.CoreV1().ReplicationControllers(rs.Namespace).UpdateStatus(ctx, rc, metav1.UpdateOptions{})
			return err
		},
	}
}

// asReplicaSet is a ReplicationController as the code of ReplicaSets reads it. It shares what the cache owns, and must not be
// changed. Its kind stays, for the events about it.
func asReplicaSet(rc *corev1.ReplicationController) *appsv1.ReplicaSet {
	rs := &appsv1.ReplicaSet{
		ObjectMeta: rc.ObjectMeta,
		Spec: appsv1.ReplicaSetSpec{
			Replicas: rc.Spec.Replicas, MinReadySeconds: rc.Spec.MinReadySeconds,
			Selector: metav1.SetAsLabelSelector(rc.Spec.Selector), Template: *rc.Spec.Template,
		},
		Status: appsv1.ReplicaSetStatus{
			Replicas: rc.Status.Replicas, FullyLabeledReplicas: rc.Status.FullyLabeledReplicas, ReadyReplicas: rc.Status.ReadyReplicas,
			AvailableReplicas: rc.Status.AvailableReplicas, ObservedGeneration: rc.Status.ObservedGeneration,
		},
	}
	rs.SetGroupVersionKind(replicationControllerKind)
	for _, c := range rc.Status.Conditions {
		rs.Status.Conditions = append(rs.Status.Conditions, appsv1.ReplicaSetCondition{
			Type: appsv1.ReplicaSetConditionType(c.Type), Status: c.Status, LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
		})
	}
	return rs
}

func statusOfReplicationController(s appsv1.ReplicaSetStatus) corev1.ReplicationControllerStatus {
	status := corev1.ReplicationControllerStatus{
		Replicas: s.Replicas, FullyLabeledReplicas: s.FullyLabeledReplicas, ReadyReplicas: s.ReadyReplicas,
		AvailableReplicas: s.AvailableReplicas, ObservedGeneration: s.ObservedGeneration,
	}
	for _, c := range s.Conditions {
		status.Conditions = append(status.Conditions, corev1.ReplicationControllerCondition{
			Type: corev1.ReplicationControllerConditionType(c.Type), Status: c.Status, LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message,
		})
	}
	return status
}
