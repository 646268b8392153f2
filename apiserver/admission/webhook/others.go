package webhook

import (
	"context"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// Client talks to a webhook of another kind than those of admission: one that converts custom resources.
type Client struct{ *client }

// NewClient makes a client, and no connection yet. endpoint finds an endpoint of a Service, as in Config.
func NewClient(place *admissionv1.WebhookClientConfig, endpoint func(ctx context.Context, namespace, service string, port int32) (string, error)) Client {
	return Client{newClient(place, endpoint)}
}

// Ask sends a review and returns the answer. The hook is told how long it has until ctx ends.
func (c Client) Ask(ctx context.Context, review []byte) ([]byte, error) { return c.ask(ctx, review) }

// Close closes the connections that lie idle.
func (c Client) Close() { c.close() }
