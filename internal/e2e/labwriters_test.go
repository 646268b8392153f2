package e2e

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kontiki/internal/apiclient"
	"kontiki/internal/lab"
	"kontiki/internal/lab/ledger"
)

const (
	// epoch is how long a writer writes before it is checked and its objects are deleted: the store stays small.
	epoch = 20 * time.Second
	// insist is how long a write is tried when an epoch is over.
	insist = time.Minute
)

// client calls a machine's API server, or the front by the name lab.
func (l *labCLI) client(context string) kubernetes.Interface {
	opened, err := lab.Open(l.dir)
	assert.NoError(l.t, err)
	config, err := opened.Config(context)
	assert.NoError(l.t, err)
	client, err := kubernetes.NewForConfig(apiclient.Config(config, "e2e/kontiki"))
	assert.NoError(l.t, err)
	return client
}

// writeEpochs writes through one server, and watches through that and the others, until ctx ends.
func (s *soak) writeEpochs(ctx context.Context, through string) {
	servers := []kubernetes.Interface{s.client(through)}
	for _, other := range without([]string{"s1", "s2", "s3"}, through) {
		servers = append(servers, s.client(other))
	}
	for n := 1; ctx.Err() == nil && !s.t.Failed(); n++ {
		w := &ledger.Writer{
			Name: fmt.Sprintf("%s-%d", through, n), Namespace: "default", Client: servers[0], Every: 50 * time.Millisecond, Timeout: 3 * time.Second,
		}
		s.writeEpoch(ctx, w, servers)
	}
}

func (s *soak) writeEpoch(ctx context.Context, w *ledger.Writer, servers []kubernetes.Interface) {
	whole := context.WithoutCancel(ctx) // what has begun is checked
	watching, stop := context.WithCancel(whole)
	defer stop()
	watcher := &ledger.Watcher{Servers: servers}
	if !s.retry(whole, func(ctx context.Context) error { return watcher.Start(watching, w) }) {
		return
	}
	limited, cancel := context.WithTimeout(ctx, epoch)
	defer cancel()
	if err := w.Run(limited, insist); !assert.NoError(s.t, err) {
		return
	}
	s.retry(whole, w.Check)
	waiting, cancel := context.WithTimeout(whole, insist)
	defer cancel()
	breaks, err := watcher.Await(waiting, w)
	assert.NoError(s.t, err)
	report := w.Report()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes += report.Acknowledged
	s.slow = max(s.slow, report.Longest)
	s.breaks += breaks
	stop()
	s.retry(whole, func(ctx context.Context) error {
		return w.Client.CoreV1().ConfigMaps(w.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: ledger.Label + "=" + w.Name})
	})
}

// retry calls f until it succeeds, for a minute, as the lab is being broken. What ledger calls a loss is a failure at once.
func (s *soak) retry(ctx context.Context, f func(context.Context) error) bool {
	ctx, cancel := context.WithTimeout(ctx, insist)
	defer cancel()
	for {
		try, done := context.WithTimeout(ctx, 5*time.Second)
		err := f(try)
		done()
		if err == nil {
			return true
		}
		if isLoss(err) || ctx.Err() != nil {
			return assert.NoError(s.t, err)
		}
		pauseFor(ctx, 100*time.Millisecond)
	}
}
