package apiserver

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"kontiki/apiserver/nodeauth"
	"kontiki/apiserver/storage"
)

var volumes = corev1.SchemeGroupVersion.WithResource("persistentvolumes")

// podsOnNodes is what the node authorizer looks up.
type podsOnNodes struct{ s *Server }

var _ nodeauth.Pods = podsOnNodes{}

// On implements nodeauth.Pods. The list is consistent: an agent that has just been told of a pod needs its secrets now.
func (p podsOnNodes) On(ctx context.Context, node, namespace string) ([]*corev1.Pod, error) {
	list, err := p.s.storeOf(p.s.table.Lookup(pods)).List(ctx, storage.ListOptions{Selection: storage.Selection{Namespace: namespace}})
	if err != nil {
		return nil, err
	}
	var out []*corev1.Pod
	for _, item := range list.Items {
		if pod := item.Object().(*corev1.Pod); pod.Spec.NodeName == node {
			out = append(out, pod)
		}
	}
	return out, nil
}

// ClaimOf implements nodeauth.Pods.
func (p podsOnNodes) ClaimOf(ctx context.Context, volume string) (namespace, name string, err error) {
	found, err := p.s.find(ctx, volumes, "", volume)
	if err != nil || found.(*corev1.PersistentVolume).Spec.ClaimRef == nil {
		return "", "", err
	}
	ref := found.(*corev1.PersistentVolume).Spec.ClaimRef
	return ref.Namespace, ref.Name, nil
}
