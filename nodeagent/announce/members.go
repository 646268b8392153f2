package announce

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	// lifetimeSeconds is how long the kernel keeps an address after the node's last word.
	lifetimeSeconds = 6
	lifetime        = lifetimeSeconds * time.Second
	// period is how often a node renews and looks.
	period = 2 * time.Second
	// confidence is how long after a renewal a node knows that the others take it for alive.
	confidence = 5 * time.Second
	// deadAfter is how long the others wait for a renewal.
	deadAfter = 8 * time.Second
	// introduction is how long a node waits after its first renewal before it takes anything: the others look every period.
	introduction = 3 * time.Second
	// apiTimeout bounds the two requests of a period.
	apiTimeout = 2 * time.Second
)

// aliveAnnotation of a node's Lease is when its announcer last said that it is alive. The Lease itself is the node
// reporter's, which renews it more slowly and does so also where nobody announces.
const aliveAnnotation = "kontiki.io/announcer-alive"

// members are the nodes that announce. Whether one is alive is judged by the own clock alone: since when what it says has
// not changed here.
type members struct {
	self   string
	client kubernetes.Interface

	seen      map[string]renewal // by node
	confirmed time.Time          // when the last renewal began that succeeded
	since     time.Time          // when the first of those began that followed one another in time
	failing   bool               // the last one did not succeed
}

type renewal struct {
	text   string
	at     time.Time // when it was first seen
	isNews bool      // another was seen before it: the node was alive then
}

// refresh renews the own Lease and reads those of the others.
func (m *members) refresh(ctx context.Context) error {
	err := m.exchange(ctx)
	m.failing = err != nil
	return err
}

func (m *members) exchange(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	began := time.Now()
	leases := m.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{aliveAnnotation: began.UTC().Format(time.RFC3339Nano)}},
	})
	if err != nil {
		return err
	}
	if _, err := leases.Patch(ctx, m.self, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return err
	}
	list, err := leases.List(ctx, metav1.ListOptions{ResourceVersion: "0"}) // what a server has at hand is new enough
	if err != nil {
		return err
	}
	if !m.isConfident(began) {
		m.seen = m.dead() // of the others, what looks old may only have been out of sight
		m.since = began
	}
	m.observe(list.Items, time.Now())
	m.confirmed = began
	return nil
}

// dead are the nodes that were dead already when this one last looked: only a word that is new says otherwise.
func (m *members) dead() map[string]renewal {
	out := map[string]renewal{}
	for name, r := range m.seen {
		if m.confirmed.Sub(r.at) >= deadAfter {
			out[name] = r
		}
	}
	return out
}

func (m *members) observe(leases []coordinationv1.Lease, now time.Time) {
	next := map[string]renewal{}
	for _, l := range leases {
		text := l.Annotations[aliveAnnotation]
		if text == "" {
			continue
		}
		known, ok := m.seen[l.Name]
		if !ok || known.text != text {
			known = renewal{text: text, at: now, isNews: ok}
		}
		next[l.Name] = known
	}
	m.seen = next
}

// isConfident says whether the others still take this node for alive.
func (m *members) isConfident(now time.Time) bool { return now.Sub(m.confirmed) < confidence }

// isKnown says whether the others have seen that this node is alive, and have left it what is its to have.
func (m *members) isKnown(now time.Time) bool { return now.Sub(m.since) >= introduction }

// alive are the nodes whose renewals are seen, the own among them.
func (m *members) alive(now time.Time) []string {
	out := []string{m.self}
	for name, r := range m.seen {
		if name != m.self && now.Sub(r.at) < deadAfter {
			out = append(out, name)
		}
	}
	return out
}

// proven are the nodes that have renewed while this one looked, the own among them: a word that was there from the start may be
// a dead node's.
func (m *members) proven(now time.Time) []string {
	return slices.DeleteFunc(m.alive(now), func(name string) bool { return name != m.self && !m.seen[name].isNews })
}

// holdSeconds is how long from now the kernel may keep an address if nothing more is heard of this node's agent.
func (m *members) holdSeconds(now time.Time) int {
	end := m.confirmed.Add(lifetime)
	if m.failing {
		end = now.Add(lifetime)
		// The others count from the last word. They look every period.
		if othersTake := m.confirmed.Add(deadAfter); now.Before(othersTake) && end.After(othersTake.Add(period)) {
			end = othersTake.Add(period)
		}
	}
	return max(1, int((end.Sub(now)+time.Second-1)/time.Second))
}
