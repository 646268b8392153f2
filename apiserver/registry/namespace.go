package registry

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
)

// namespaces. A namespace that is deleted stays, Terminating, until the namespace controller has
// emptied it and takes "kubernetes" out of spec.finalizers through the finalize subresource.
func namespaces() *Resource {
	r := newRow[corev1.Namespace, corev1.NamespaceList](corev1.SchemeGroupVersion, "namespaces", "Namespace")
	r.ShortNames = []string{"ns"}
	r.Namespaced = false
	// A collection of namespaces cannot be deleted, as in Kubernetes.
	r.Verbs = []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	r.Strategy = Strategy{
		ValidateName:     apivalidation.NameIsDNSLabel,
		NoGeneration:     true,
		ReturnDeleted:    true,
		Default:          defaulter(defaultNamespace),
		PrepareForCreate: preparer(prepareNamespace),
		PrepareForUpdate: updatePreparer(func(ns, old *corev1.Namespace) { ns.Spec.Finalizers = old.Spec.Finalizers }),
		KeepOnDelete:     func(obj runtime.Object) bool { return len(obj.(*corev1.Namespace).Spec.Finalizers) > 0 },
		PrepareForDelete: defaulter(func(ns *corev1.Namespace) { ns.Status.Phase = corev1.NamespaceTerminating }),
	}
	status := statusOf(r, func(ns, old *corev1.Namespace) { ns.Spec = old.Spec })
	finalize := Subresource{
		Name:   "finalize",
		Kind:   r.GroupVersionKind(),
		New:    r.New,
		Verbs:  []string{"update"},
		Update: updatePreparer(func(ns, old *corev1.Namespace) { ns.Status = old.Status }),
		Resets: []string{"status"},
	}
	r.Subresources = []Subresource{finalize, status}
	r.Fields = fieldSet(func(ns *corev1.Namespace) fields.Set { return fields.Set{"status.phase": string(ns.Status.Phase)} })
	r.Columns, r.Row = namespaceColumns, cells(namespaceRow)
	return r
}

// defaultNamespace adds the label that lets selectors name a namespace.
func defaultNamespace(ns *corev1.Namespace) {
	setDefault(&ns.Status.Phase, corev1.NamespaceActive)
	if ns.Name == "" {
		return // the name is still to be generated
	}
	if ns.Labels == nil {
		ns.Labels = map[string]string{}
	}
	ns.Labels[corev1.LabelMetadataName] = ns.Name
}

func prepareNamespace(ns *corev1.Namespace) {
	ns.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
	for _, f := range ns.Spec.Finalizers {
		if f == corev1.FinalizerKubernetes {
			return
		}
	}
	ns.Spec.Finalizers = append(ns.Spec.Finalizers, corev1.FinalizerKubernetes)
}
