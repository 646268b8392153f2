package controllers

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// byClaim is the index of pods by the claims that they name, as "namespace/name".
const byClaim = "protection.claim"

func addClaimProtection(m *manager) error {
	client, err := m.client("pvc-protection")
	if err != nil {
		return err
	}
	claims, pods := m.shared.Core().V1().PersistentVolumeClaims(), m.shared.Core().V1().Pods().Informer()
	err = pods.AddIndexers(cache.Indexers{byClaim: func(obj any) (keys []string, err error) {
		for _, req := range claimsOf(obj.(*corev1.Pod)) {
			keys = append(keys, req.String())
		}
		return keys, nil
	}})
	if err != nil {
		return err
	}
	c := m.add("pvc-protection", 2, &protection[*corev1.PersistentVolumeClaim]{
		finalizer: "kubernetes.io/pvc-protection",
		get: func(namespace, name string) (*corev1.PersistentVolumeClaim, error) {
			return claims.Lister().PersistentVolumeClaims(namespace).Get(name)
		},
		used: claimUsers{client, pods.GetIndexer()}.any,
		patch: func(ctx context.Context, claim *corev1.PersistentVolumeClaim, patch []byte) error {
			_, err := client.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(ctx, claim.Name, types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		},
	})
	watch(c, claims.Informer(), requestFor[*corev1.PersistentVolumeClaim])
	watchUpdates(c, pods, claimsOf, func(before, after *corev1.Pod) bool {
		return before.UID != after.UID || leaving(after) && !leaving(before)
	})
	return nil
}

// claimsOf are the claims that a pod names, and those that are made for it under its name.
func claimsOf(pod *corev1.Pod) (out []Request) {
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			out = append(out, Request{types.NamespacedName{Namespace: pod.Namespace, Name: v.PersistentVolumeClaim.ClaimName}})
		case v.Ephemeral != nil:
			out = append(out, Request{types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name + "-" + v.Name}})
		}
	}
	return out
}

// claimUsers finds the pods that use a claim.
type claimUsers struct {
	client kubernetes.Interface
	pods   cache.Indexer
}

// any looks into the cache, and only if nobody is there asks the API server, since the cache may not have the newest pod yet.
func (u claimUsers) any(ctx context.Context, claim *corev1.PersistentVolumeClaim) (bool, error) {
	known, err := indexed[*corev1.Pod](u.pods, byClaim, claim.Namespace+"/"+claim.Name)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(known, func(pod *corev1.Pod) bool { return usesClaim(pod, claim) }) {
		return true, nil
	}
	all, err := u.client.CoreV1().Pods(claim.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(all.Items, func(pod corev1.Pod) bool { return usesClaim(&pod, claim) }), nil
}

// usesClaim: a pod without a node does not: no node agent starts it with a claim that is being deleted. One that has
// ended does, as long as it is there. A claim that was made for a pod must not wait for one that waits for it.
func usesClaim(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	if pod.Spec.NodeName == "" {
		return false
	}
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim.Name ||
			v.Ephemeral != nil && !leaving(pod) && pod.Name+"-"+v.Name == claim.Name && metav1.IsControlledBy(claim, pod)
	})
}

// leaving: the node agent is done with the pod, or somebody has not waited for it; at most finalizers hold it.
func leaving(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil && pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0
}
