// Firstoperator keeps a ConfigMap for every Sign. docs/operators.md writes it step by step.
package main

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func newSign() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Sign"})
	return u
}

func main() {
	ctrl.SetLogger(logr.FromSlogHandler(slog.Default().Handler()))
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	check(err)
	c := manager.GetClient()
	check(ctrl.NewControllerManagedBy(manager).Named("sign").For(newSign()).Owns(&corev1.ConfigMap{}).Complete(
		reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
			sign := newSign()
			if err := c.Get(ctx, req.NamespacedName, sign); err != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err) // it has gone, and what it owns goes by itself
			}
			text, _, _ := unstructured.NestedString(sign.Object, "spec", "text")
			shown := corev1ac.ConfigMap(sign.GetName(), sign.GetNamespace()).WithData(map[string]string{"text": text}).
				WithOwnerReferences(metav1ac.OwnerReference().WithAPIVersion("example.com/v1").WithKind("Sign").
					WithName(sign.GetName()).WithUID(sign.GetUID()).WithController(true))
			if err := c.Apply(ctx, shown, client.FieldOwner("sign-operator"), client.ForceOwnership); err != nil {
				return ctrl.Result{}, err
			}
			before := sign.DeepCopy()
			check(unstructured.SetNestedField(sign.Object, text, "status", "shown"))
			return ctrl.Result{}, c.Status().Patch(ctx, sign, client.MergeFrom(before))
		})))
	check(manager.Start(ctrl.SetupSignalHandler()))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
