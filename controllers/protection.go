package controllers

import (
	"context"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// protection keeps objects that are in use from being deleted, by a finalizer. Admission puts it on what is created
// (apiserver/admission/storageprotection.go); this reconciler takes it off when the object is to be deleted and nobody uses
// it, and puts it on what is older than that plugin.
//
//	claims              used by pods that have a node
//	volumes             used while bound to a claim
//	attributes classes  used by volumes and claims that have or want one
type protection[T metav1.Object] struct {
	finalizer string
	get       func(namespace, name string) (T, error) // from a cache
	used      func(ctx context.Context, obj T) (bool, error)
	patch     func(ctx context.Context, obj T, patch []byte) error // a merge patch
}

// Reconcile implements Reconciler.
func (p *protection[T]) Reconcile(ctx context.Context, req Request) (Result, error) {
	obj, err := p.get(req.Namespace, req.Name)
	if apierrors.IsNotFound(err) {
		return Result{}, nil
	}
	if err != nil {
		return Result{}, err
	}
	finalizers := obj.GetFinalizers()
	on := slices.Contains(finalizers, p.finalizer)
	switch deleting := obj.GetDeletionTimestamp() != nil; {
	case deleting && on:
		if used, err := p.used(ctx, obj); used || err != nil {
			return Result{}, err
		}
		finalizers = slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return f == p.finalizer })
	case !deleting && !on:
		finalizers = append(slices.Clone(finalizers), p.finalizer)
	default:
		return Result{}, nil
	}
	// The resourceVersion makes it fail if anything has changed since the decision, other finalizers too.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": obj.GetUID(), "resourceVersion": obj.GetResourceVersion(), "finalizers": finalizers,
	}})
	if err != nil {
		return Result{}, err
	}
	return Result{}, ignoreNotFound(p.patch(ctx, obj, patch))
}

func addProtection(m *manager) error {
	if err := addVolumeProtection(m); err != nil {
		return err
	}
	if err := addClaimProtection(m); err != nil {
		return err
	}
	return addAttributesProtection(m)
}

func addVolumeProtection(m *manager) error {
	client, err := m.client("pv-protection")
	if err != nil {
		return err
	}
	volumes := m.shared.Core().V1().PersistentVolumes()
	c := m.add("pv-protection", 1, &protection[*corev1.PersistentVolume]{
		finalizer: "kubernetes.io/pv-protection",
		get:       func(_, name string) (*corev1.PersistentVolume, error) { return volumes.Lister().Get(name) },
		used: func(_ context.Context, v *corev1.PersistentVolume) (bool, error) {
			return v.Status.Phase == corev1.VolumeBound, nil
		},
		patch: func(ctx context.Context, v *corev1.PersistentVolume, patch []byte) error {
			_, err := client.CoreV1().PersistentVolumes().Patch(ctx, v.Name, types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		},
	})
	watch(c, volumes.Informer(), requestFor[*corev1.PersistentVolume])
	return nil
}

func addAttributesProtection(m *manager) error {
	client, err := m.client("volumeattributesclass-protection")
	if err != nil {
		return err
	}
	classes := m.shared.Storage().V1().VolumeAttributesClasses()
	volumes, claims := m.shared.Core().V1().PersistentVolumes().Informer(), m.shared.Core().V1().PersistentVolumeClaims().Informer()
	c := m.add("volumeattributesclass-protection", 1, &protection[*storagev1.VolumeAttributesClass]{
		finalizer: "kubernetes.io/vac-protection",
		get:       func(_, name string) (*storagev1.VolumeAttributesClass, error) { return classes.Lister().Get(name) },
		used: func(_ context.Context, class *storagev1.VolumeAttributesClass) (bool, error) {
			for _, obj := range volumes.GetStore().List() {
				if slices.Contains(attributesOfVolume(obj.(*corev1.PersistentVolume)), named(class.Name)) {
					return true, nil
				}
			}
			for _, obj := range claims.GetStore().List() {
				if slices.Contains(attributesOfClaim(obj.(*corev1.PersistentVolumeClaim)), named(class.Name)) {
					return true, nil
				}
			}
			return false, nil
		},
		patch: func(ctx context.Context, class *storagev1.VolumeAttributesClass, patch []byte) error {
			_, err := client.StorageV1().VolumeAttributesClasses().Patch(ctx, class.Name, types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		},
	})
	watch(c, classes.Informer(), requestFor[*storagev1.VolumeAttributesClass])
	watch(c, volumes, attributesOfVolume)
	watch(c, claims, attributesOfClaim)
	return nil
}

// attributesOfVolume are the attributes classes that a volume has.
func attributesOfVolume(v *corev1.PersistentVolume) (out []Request) {
	return classRequests(v.Spec.VolumeAttributesClassName)
}

// attributesOfClaim are those that a claim has, wants, or is on its way to.
func attributesOfClaim(c *corev1.PersistentVolumeClaim) []Request {
	out := classRequests(c.Spec.VolumeAttributesClassName, c.Status.CurrentVolumeAttributesClassName)
	if m := c.Status.ModifyVolumeStatus; m != nil {
		out = append(out, classRequests(&m.TargetVolumeAttributesClassName)...)
	}
	return out
}

func classRequests(names ...*string) (out []Request) {
	for _, name := range names {
		if name != nil && *name != "" {
			out = append(out, named(*name))
		}
	}
	return out
}
