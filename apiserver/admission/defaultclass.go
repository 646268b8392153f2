package admission

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// defaultStorageClass gives a claim without a class the cluster's default one. An empty class ("") is a choice: none.
type defaultStorageClass struct{ objects Objects }

// defaultIngressClass does the same for ingresses.
type defaultIngressClass struct{ objects Objects }

var (
	storageClasses = storagev1.SchemeGroupVersion.WithResource("storageclasses")
	ingressClasses = networkingv1.SchemeGroupVersion.WithResource("ingressclasses")
)

// Annotations that make a class the default.
const (
	isDefaultStorageClass = "storageclass.kubernetes.io/is-default-class"
	isDefaultIngressClass = "ingressclass.kubernetes.io/is-default-class"
	// Old ways to say the class.
	betaStorageClass = "volume.beta.kubernetes.io/storage-class"
	oldIngressClass  = "kubernetes.io/ingress.class"
)

// Mutate implements Mutator.
func (d defaultStorageClass) Mutate(ctx context.Context, r *Request) error {
	claim, ok := r.Object.(*corev1.PersistentVolumeClaim)
	if !ok || r.Operation != Create || r.Subresource != "" || claim.Spec.StorageClassName != nil {
		return nil
	}
	if _, ok := claim.Annotations[betaStorageClass]; ok {
		return nil
	}
	name, err := defaultClass(ctx, d.objects, storageClasses, isDefaultStorageClass)
	if name != "" {
		claim.Spec.StorageClassName = &name
	}
	return err
}

// Mutate implements Mutator.
func (d defaultIngressClass) Mutate(ctx context.Context, r *Request) error {
	ingress, ok := r.Object.(*networkingv1.Ingress)
	if !ok || r.Operation != Create || r.Subresource != "" || ingress.Spec.IngressClassName != nil {
		return nil
	}
	if _, ok := ingress.Annotations[oldIngressClass]; ok {
		return nil
	}
	name, err := defaultClass(ctx, d.objects, ingressClasses, isDefaultIngressClass)
	if name != "" {
		ingress.Spec.IngressClassName = &name
	}
	return err
}

// defaultClass is the name of the class that is annotated as the default: of several the newest, and of those of one second
// the first by name; empty if there is none.
func defaultClass(ctx context.Context, objects Objects, resource schema.GroupVersionResource, annotation string) (string, error) {
	all, err := objects.List(ctx, resource, "")
	if err != nil {
		return "", err
	}
	all = slices.DeleteFunc(slices.Clone(all), func(o runtime.Object) bool { return o.(metav1.Object).GetAnnotations()[annotation] != "true" })
	if len(all) == 0 {
		return "", nil
	}
	return slices.MinFunc(all, func(a, b runtime.Object) int {
		x, y := a.(metav1.Object), b.(metav1.Object)
		return cmp.Or(y.GetCreationTimestamp().Compare(x.GetCreationTimestamp().Time), cmp.Compare(x.GetName(), y.GetName()))
	}).(metav1.Object).GetName(), nil
}
