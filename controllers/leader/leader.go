package leader

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// The Lease is valid for leaseDuration after its last renewal; a leader that could not renew for renewDeadline stops
// working well before another can take over, so two never act at once (as long as clocks run at about the same speed).
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// Config names the Lease and who asks for it. All fields but Identity are required.
type Config struct {
	// REST reaches the API server.
	REST *rest.Config
	// Name is the Lease's name in kube-system.
	Name string
	// Identity must differ between the candidates; the host name by default.
	Identity string
	// Log tells who leads.
	Log *slog.Logger
}

// Run campaigns until ctx ends. Each time it wins it calls work, whose context ends when leadership does; work must return
// then. The Lease is given up when ctx ends, so that a successor need not wait for it to expire. An error of work ends Run.
func Run(ctx context.Context, config Config, work func(context.Context) error) error {
	client, err := kubernetes.NewForConfig(config.REST)
	if err != nil {
		return fmt.Errorf("leader: client: %w", err)
	}
	if config.Identity == "" {
		config.Identity, _ = os.Hostname()
	}
	for ctx.Err() == nil {
		if err := oneTerm(ctx, config, client, work); err != nil {
			return err
		}
	}
	return nil
}

func oneTerm(ctx context.Context, config Config, client kubernetes.Interface, work func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := &term{}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: config.Name},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: config.Identity},
		},
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		ReleaseOnCancel: true, Name: config.Name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				t.work(ctx, work)
				cancel() // work that ends by itself gives up the lease
			},
			OnStoppedLeading: func() { config.Log.Info("leadership ended", "lease", config.Name) },
			OnNewLeader: func(identity string) {
				config.Log.Info("leader elected", "lease", config.Name, "leader", identity)
			},
		},
	})
	if err != nil {
		return fmt.Errorf("leader: %s: %w", config.Name, err)
	}
	elector.Run(ctx)
	return t.end()
}

// term joins the goroutine in which the elector calls OnStartedLeading: the elector starts it and does not wait for it.
type term struct {
	mu      sync.Mutex // guards ended and err
	ended   bool
	err     error
	working sync.WaitGroup
}

func (t *term) work(ctx context.Context, work func(context.Context) error) {
	t.mu.Lock()
	if t.ended {
		t.mu.Unlock()
		return
	}
	t.working.Add(1)
	t.mu.Unlock()
	defer t.working.Done()
	err := work(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
}

func (t *term) end() error {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	t.working.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}
