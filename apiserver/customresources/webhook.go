package customresources

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	patience time.Duration
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
	return &Webhooks{endpoint: endpoint, patience: conversionTime, closing: make(chan struct{}), clients: map[string]webhookOfOwner{}}
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
	ctx, cancel := context.WithTimeout(context.Background(), w.patience)
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
		return nil, failed(objects, "speaks %v, and this server %v", d.Spec.Conversion.Webhook.ConversionReviewVersions, reviewVersions)
	}
	uid := types.UID(uuid.NewString())
	review, err := json.Marshal(newReview(version, uid, objects, to))
	if err != nil {
		return nil, err
	}
	answer, err := w.clientOf(d).Ask(ctx, review)
	if err != nil {
		return nil, failed(objects, "failed: %w", err)
	}
	return readReview(answer, version, uid, objects, to)
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

// Clients is how many webhooks there are connections to.
func (w *Webhooks) Clients() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.clients)
}
