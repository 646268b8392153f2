package apiserver

import (
	"context"
	"sync"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"kontiki/apiserver/nodeauth"
	"kontiki/apiserver/storage"
	"kontiki/watch"
)

var volumes = corev1.SchemeGroupVersion.WithResource("persistentvolumes")

// nodePods knows the pods on every node, by their keys in the store. It follows them by a watch, so it may be a moment behind: a yes that
// it gives is as good as one of that moment, a no is asked of the store.
type nodePods struct {
	mu     sync.RWMutex // guards byNode and nodeOf
	byNode map[string]map[string]*nodeauth.Pod
	nodeOf map[string]string
}

// forget drops everything: what follows the pods begins anew.
func (n *nodePods) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.byNode, n.nodeOf = map[string]map[string]*nodeauth.Pod{}, map[string]string{}
}

// note takes one change of a pod.
func (n *nodePods) note(event watch.Event) {
	if event.Object == nil {
		return
	}
	key := event.Object.Key
	pod, ok := event.Object.Object().(*corev1.Pod)
	n.mu.Lock()
	defer n.mu.Unlock()
	var known *nodeauth.Pod
	if was, ok := n.nodeOf[key]; ok {
		known = n.byNode[was][key]
		delete(n.nodeOf, key)
		if delete(n.byNode[was], key); len(n.byNode[was]) == 0 {
			delete(n.byNode, was)
		}
	}
	if event.Type == watch.Deleted || !ok || pod.Spec.NodeName == "" {
		return
	}
	node := pod.Spec.NodeName
	if n.byNode[node] == nil {
		n.byNode[node] = map[string]*nodeauth.Pod{}
	}
	n.nodeOf[key], n.byNode[node][key] = node, nodeauth.NewPod(pod, known)
}

func (n *nodePods) any(node, namespace string, holds func(*nodeauth.Pod) bool) bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	for _, pod := range n.byNode[node] {
		if (namespace == "" || pod.Namespace == namespace) && holds(pod) {
			return true
		}
	}
	return false
}

// followPods keeps nodePods until ctx ends. It returns when the watch does: follow calls it again.
func (s *Server) followPods(ctx context.Context) (int64, error) {
	s.nodePods.forget()
	watcher, err := s.storeOf(s.table.Lookup(pods)).Watch(ctx, storage.WatchOptions{ResourceVersion: "0"})
	if err != nil {
		return 0, err
	}
	defer watcher.Stop()
	for {
		events, err := watcher.Next(ctx)
		if err != nil {
			return 0, err
		}
		for _, event := range events {
			s.nodePods.note(event)
		}
	}
}

// nodeNeeds is what the node authorizer looks up.
type nodeNeeds struct{ s *Server }

var _ nodeauth.Objects = nodeNeeds{}

// AnyOn implements nodeauth.Objects. Before a no the pods are read consistently: an agent that has just been told of a pod
// needs its secrets now.
func (n nodeNeeds) AnyOn(ctx context.Context, node, namespace string, holds func(*nodeauth.Pod) bool) (bool, error) {
	if n.s.nodePods.any(node, namespace, holds) {
		return true, nil
	}
	list, err := n.s.storeOf(n.s.table.Lookup(pods)).List(ctx, storage.ListOptions{Selection: storage.Selection{Namespace: namespace}})
	if err != nil {
		return false, err
	}
	for _, item := range list.Items {
		if pod, ok := item.Object().(*corev1.Pod); ok && pod.Spec.NodeName == node && holds(nodeauth.NewPod(pod, nil)) {
			return true, nil
		}
	}
	return false, nil
}

// Volume implements nodeauth.Objects.
func (n nodeNeeds) Volume(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	found, err := n.s.find(ctx, volumes, "", name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	volume, _ := found.(*corev1.PersistentVolume)
	return volume, err
}

// Volumes implements nodeauth.Objects. They come from the cache: a volume that was bound a moment ago is asked for again.
func (n nodeNeeds) Volumes(ctx context.Context) (out []*corev1.PersistentVolume, err error) {
	list, err := n.s.storeOf(n.s.table.Lookup(volumes)).List(ctx, storage.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	for _, item := range list.Items {
		if volume, ok := item.Object().(*corev1.PersistentVolume); ok {
			out = append(out, volume)
		}
	}
	return out, nil
}

// NodeOf implements nodeauth.Objects.
func (n nodeNeeds) NodeOf(ctx context.Context, resource, namespace, name string) (string, error) {
	switch resource {
	case "volumeattachments":
		attachment, err := found[storagev1.VolumeAttachment](ctx, n.s, storagev1.SchemeGroupVersion.WithResource(resource), "", name)
		return attachment.Spec.NodeName, err
	case "resourceslices":
		slice, err := found[resourcev1.ResourceSlice](ctx, n.s, resourcev1.SchemeGroupVersion.WithResource(resource), "", name)
		return ptr.Deref(slice.Spec.NodeName, ""), err
	case "podcertificaterequests":
		request, err := found[certificatesv1.PodCertificateRequest](ctx, n.s, certificatesv1.SchemeGroupVersion.WithResource(resource), namespace, name)
		return string(request.Spec.NodeName), err
	}
	return "", nil
}

// found reads an object by its Go type; with an error comes an empty one.
func found[T any, P interface {
	*T
	runtime.Object
}](ctx context.Context, s *Server, resource schema.GroupVersionResource, namespace, name string) (P, error) {
	obj, err := s.find(ctx, resource, namespace, name)
	if object, ok := obj.(P); ok && err == nil {
		return object, nil
	}
	return P(new(T)), err
}
