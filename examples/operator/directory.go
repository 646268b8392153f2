package main

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "kontiki/examples/operator/api/v1"
)

// +kubebuilder:rbac:groups="",namespace=site-system,resources=configmaps,resourceNames=directory,verbs=patch

// finalizer keeps a Site until its entry has been removed. An owner in another namespace cannot own the entry, so
// nobody else would remove it.
const finalizer = "web.example.com/directory"

// Directory is a ConfigMap with a line for each site. It stands for whatever is outside: DNS, a load balancer, a bill.
type Directory struct {
	Client    client.Writer
	Namespace string
}

// Enter writes a site's line.
func (d Directory) Enter(ctx context.Context, site *webv1.Site) error {
	return d.patch(ctx, site, site.Spec.Greeting)
}

// Remove takes it away, and is content if there is none.
func (d Directory) Remove(ctx context.Context, site *webv1.Site) error {
	return client.IgnoreNotFound(d.patch(ctx, site, nil))
}

func (d Directory) patch(ctx context.Context, site *webv1.Site, line any) error {
	body, err := json.Marshal(map[string]any{"data": map[string]any{site.Namespace + "." + site.Name: line}})
	if err != nil {
		return err
	}
	directory := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: "directory"}}
	return d.Client.Patch(ctx, directory, client.RawPatch(types.MergePatchType, body))
}
