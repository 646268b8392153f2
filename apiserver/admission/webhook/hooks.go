package webhook

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

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

	mu      sync.Mutex // one Set at a time; guards clients
	clients *clients
	now     atomic.Pointer[inUse]
}

// inUse is one state of the configuration, in the order in which hooks are asked.
type inUse struct{ mutating, validating []*hook }

// New returns Webhooks that have nothing in use yet.
func New(config Config) *Webhooks {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	return &Webhooks{config: config, clients: newClients(config.Endpoint)}
}

// Set takes configurations into use, for requests that come from now on. Hooks are in the order of their configurations'
// names, those of one configuration as they stand there.
func (w *Webhooks) Set(c Configurations) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.set(c)
}

// set is Set. w.mu is held.
func (w *Webhooks) set(c Configurations) {
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
	w.now.Store(next)
}

// hooks are those in use. If none have been read yet, they are read now.
func (w *Webhooks) hooks(ctx context.Context) (*inUse, error) {
	if now := w.now.Load(); now != nil {
		return now, nil
	}
	c, err := w.config.Load(ctx)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.now.Load() == nil { // else a Set has come in between, and may know more
		w.set(c)
	}
	return w.now.Load(), nil
}

// Close closes idle connections to hooks.
func (w *Webhooks) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clients.close()
}
