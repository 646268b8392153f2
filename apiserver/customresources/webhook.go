package customresources

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kontiki/apiserver/admission/webhook"
)

// conversionTime is how long a webhook may take, as in Kubernetes.
const conversionTime = 30 * time.Second

// reviewVersions are the forms of a ConversionReview that are spoken here. They differ in name only.
var reviewVersions = []string{"v1", "v1beta1"}

// Webhooks convert between versions by asking webhooks. (KEP-598; the answers are checked as Kubernetes checks them.)
type Webhooks struct {
	endpoint func(ctx context.Context, namespace, service string, port int32) (string, error)
	closing  chan struct{} // closed by Close, which ends what is under way

	mu      sync.Mutex                // guards clients
	clients map[string]webhookOfOwner // by definition
}

type webhookOfOwner struct {
	place  string
	client webhook.Client
}

var _ Converter = (*Webhooks)(nil)

// NewWebhooks makes a Converter. endpoint finds an endpoint of a Service.
func NewWebhooks(endpoint func(ctx context.Context, namespace, service string, port int32) (string, error)) *Webhooks {
	return &Webhooks{endpoint: endpoint, closing: make(chan struct{}), clients: map[string]webhookOfOwner{}}
}

// Forget closes the connections of a definition that has gone.
func (w *Webhooks) Forget(definition string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c, ok := w.clients[definition]; ok {
		c.client.Close()
		delete(w.clients, definition)
	}
}

// Close ends all conversions and closes the connections. It must be called once.
func (w *Webhooks) Close() {
	close(w.closing)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.clients {
		c.client.Close()
	}
	clear(w.clients)
}

// Convert implements Converter. What is converted is remembered for everybody who reads the object, so that it is no single
// request that ends it.
func (w *Webhooks) Convert(d *apiextensionsv1.CustomResourceDefinition, objects []*unstructured.Unstructured, to schema.GroupVersion) ([]*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(context.Background(), conversionTime)
	defer cancel()
	go func() {
		select {
		case <-w.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	version := reviewVersion(d)
	if version == "" {
		return nil, fmt.Errorf("%w: it speaks %v, and this server %v", ErrConversion, d.Spec.Conversion.Webhook.ConversionReviewVersions, reviewVersions)
	}
	uid := types.UID(uuid.NewString())
	review, err := json.Marshal(newReview(version, uid, objects, to))
	if err != nil {
		return nil, err
	}
	answer, err := w.clientOf(d).Ask(ctx, review)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConversion, err)
	}
	converted, err := readReview(answer, version, uid, objects, to)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConversion, err)
	}
	return converted, nil
}

func reviewVersion(d *apiextensionsv1.CustomResourceDefinition) string {
	i := slices.IndexFunc(d.Spec.Conversion.Webhook.ConversionReviewVersions, func(v string) bool { return slices.Contains(reviewVersions, v) })
	if i < 0 {
		return ""
	}
	return d.Spec.Conversion.Webhook.ConversionReviewVersions[i]
}

// clientOf returns the client of a definition's webhook; one that has moved gets a new one.
func (w *Webhooks) clientOf(d *apiextensionsv1.CustomResourceDefinition) webhook.Client {
	config := d.Spec.Conversion.Webhook.ClientConfig
	place := config.String()
	w.mu.Lock()
	defer w.mu.Unlock()
	if c, ok := w.clients[d.Name]; ok {
		if c.place == place {
			return c.client
		}
		c.client.Close()
	}
	c := webhook.NewClient(placeOf(config), w.endpoint)
	w.clients[d.Name] = webhookOfOwner{place, c}
	return c
}

func placeOf(c *apiextensionsv1.WebhookClientConfig) *admissionv1.WebhookClientConfig {
	out := &admissionv1.WebhookClientConfig{URL: c.URL, CABundle: c.CABundle}
	if s := c.Service; s != nil {
		out.Service = &admissionv1.ServiceReference{Namespace: s.Namespace, Name: s.Name, Path: s.Path, Port: s.Port}
	}
	return out
}

func newReview(version string, uid types.UID, objects []*unstructured.Unstructured, to schema.GroupVersion) *apiextensionsv1.ConversionReview {
	out := &apiextensionsv1.ConversionReview{
		TypeMeta: metav1.TypeMeta{Kind: "ConversionReview", APIVersion: apiextensionsv1.GroupName + "/" + version},
		Request:  &apiextensionsv1.ConversionRequest{UID: uid, DesiredAPIVersion: to.String()},
	}
	for _, u := range objects {
		out.Request.Objects = append(out.Request.Objects, runtime.RawExtension{Object: u})
	}
	return out
}

// readReview takes the objects out of an answer. A webhook may change everything but what an object is and, of its
// metadata, all but labels and annotations: the rest of it is kept as it was.
func readReview(answer []byte, version string, uid types.UID, before []*unstructured.Unstructured, to schema.GroupVersion) ([]*unstructured.Unstructured, error) {
	var review apiextensionsv1.ConversionReview
	if err := json.Unmarshal(answer, &review); err != nil {
		return nil, err
	}
	want := schema.GroupVersionKind{Group: apiextensionsv1.GroupName, Version: version, Kind: "ConversionReview"}
	response := review.Response
	switch {
	case review.GroupVersionKind() != want:
		return nil, fmt.Errorf("expected webhook response of %s, got %s", want, review.GroupVersionKind())
	case response == nil:
		return nil, fmt.Errorf("no response provided")
	case response.UID != uid:
		return nil, fmt.Errorf("expected response.uid=%q, got %q", uid, response.UID)
	case response.Result.Status != metav1.StatusSuccess:
		return nil, fmt.Errorf("%s", cmp.Or(response.Result.Message, "response.result.status was "+response.Result.Status))
	case len(response.ConvertedObjects) != len(before):
		return nil, fmt.Errorf("webhook returned %d objects, expected %d", len(response.ConvertedObjects), len(before))
	}
	var out []*unstructured.Unstructured
	for i, raw := range response.ConvertedObjects {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(raw.Raw); err != nil {
			return nil, fmt.Errorf("invalid converted object at index %d: %w", i, err)
		}
		if err := sameObject(before[i], u, to); err != nil {
			return nil, fmt.Errorf("invalid converted object at index %d: %w", i, err)
		}
		keepMetadata(before[i], u)
		out = append(out, u)
	}
	return out, nil
}

func sameObject(before, after *unstructured.Unstructured, to schema.GroupVersion) error {
	if after.GetAPIVersion() != to.String() {
		return fmt.Errorf("invalid apiVersion: %s, want %s", after.GetAPIVersion(), to)
	}
	for _, part := range []struct{ name, want, got string }{
		{"kind", before.GetKind(), after.GetKind()},
		{"metadata.name", before.GetName(), after.GetName()},
		{"metadata.namespace", before.GetNamespace(), after.GetNamespace()},
		{"metadata.uid", string(before.GetUID()), string(after.GetUID())},
	} {
		if part.want != part.got {
			return fmt.Errorf("must have the same %s: %q != %q", part.name, part.got, part.want)
		}
	}
	return nil
}

func keepMetadata(before, after *unstructured.Unstructured) {
	labels, annotations := after.GetLabels(), after.GetAnnotations()
	metadata, found, _ := unstructured.NestedMap(before.Object, "metadata") // a copy
	if !found {
		metadata = map[string]any{}
	}
	after.Object["metadata"] = metadata
	after.SetLabels(labels)
	after.SetAnnotations(annotations)
}
