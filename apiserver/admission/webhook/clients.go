package webhook

import (
	"encoding/json"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// clients are those of the hooks in use, by where their hooks are. Hooks at one place share a client, and a client stays
// as long as any configuration has its place, so that connections outlive changes. The owner serialises all calls.
type clients struct {
	endpoint endpointFunc
	now      map[string]*client
	next     map[string]*client // while a new configuration is being compiled
}

func newClients(endpoint endpointFunc) *clients {
	return &clients{endpoint: endpoint, now: map[string]*client{}}
}

// begin begins a new configuration.
func (c *clients) begin() { c.next = map[string]*client{} }

// get returns the client for a place.
func (c *clients) get(place *admissionv1.WebhookClientConfig) *client {
	text, err := json.Marshal(place)
	if err != nil {
		panic("webhook: a client configuration cannot be written as JSON: " + err.Error())
	}
	key := string(text)
	if c.next[key] == nil {
		if c.next[key] = c.now[key]; c.next[key] == nil {
			c.next[key] = newClient(place, c.endpoint)
		}
	}
	return c.next[key]
}

// end takes the new configuration's clients into use, and closes the connections of those that are left over. Calls that
// are under way end as they would.
func (c *clients) end() {
	for key, old := range c.now {
		if c.next[key] == nil {
			old.close()
		}
	}
	c.now, c.next = c.next, nil
}

func (c *clients) close() {
	for _, one := range c.now {
		one.close()
	}
}
