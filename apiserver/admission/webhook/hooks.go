package webhook

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"kontiki/apiserver/admission/dynamic"
)

// The names of the plugins.
const (
	MutatingPlugin   = "MutatingAdmissionWebhook"
	ValidatingPlugin = "ValidatingAdmissionWebhook"
)

// Config of Webhooks.
type Config struct {
	Matcher    *dynamic.Matcher
	Authorizer dynamic.Authorizer
	// Endpoint returns the address, host:port, of an endpoint that serves a port of a Service. Each call may return
	// another one.
	Endpoint func(ctx context.Context, namespace, service string, port int32) (string, error)
	// Load reads all configurations. It is called when a request comes before the first Set.
	Load func(context.Context) (Configurations, error)
	Log  *slog.Logger // nil discards
}

// Configurations are all of the cluster.
type Configurations struct {
	Mutating   []*admissionv1.MutatingWebhookConfiguration
	Validating []*admissionv1.ValidatingWebhookConfiguration
}

// Webhooks are the hooks that are in use. They are safe for concurrent use.
type Webhooks struct {
	config Config

	current *dynamic.InUse[Configurations, inUse]

	mu      sync.Mutex // guards clients
	clients *clients
}

// inUse is one state of the configuration, in the order in which hooks are asked.
type inUse struct{ mutating, validating []*hook }

// New returns Webhooks that have nothing in use yet.
func New(config Config) *Webhooks {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	w := &Webhooks{config: config, clients: newClients(config.Endpoint)}
	w.current = dynamic.NewInUse(config.Load, w.use)
	return w
}

// Set takes configurations into use, for requests that come from now on. Hooks are in the order of their configurations'
// names, those of one configuration as they stand there.
func (w *Webhooks) Set(c Configurations) { w.current.Set(c) }

// use makes the hooks of configurations.
func (w *Webhooks) use(c Configurations) *inUse {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clients.begin()
	next := &inUse{}
	mutating := slices.SortedFunc(slices.Values(c.Mutating), func(a, b *admissionv1.MutatingWebhookConfiguration) int { return cmp.Compare(a.Name, b.Name) })
	for _, one := range mutating {
		next.mutating = append(next.mutating, hooksOf(one.Name, one.Webhooks, w.clients)...)
	}
	validating := slices.SortedFunc(slices.Values(c.Validating), func(a, b *admissionv1.ValidatingWebhookConfiguration) int { return cmp.Compare(a.Name, b.Name) })
	for _, one := range validating {
		next.validating = append(next.validating, hooksOf(one.Name, asMutating(one.Webhooks), w.clients)...)
	}
	w.clients.end()
	return next
}

// Close closes idle connections to hooks.
func (w *Webhooks) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clients.close()
}
