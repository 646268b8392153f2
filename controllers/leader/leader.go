package leader

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
)

// Config names the Lease and who asks for it. All fields but Identity and Duration are required.
type Config struct {
	// REST reaches the API server.
	REST *rest.Config
	// Name is the Lease's name in kube-system.
	Name string
	// Identity must differ between the candidates; the host name by default. A process takes a Lease of its own name at its
	// start: it is that of its former life.
	Identity string
	// Duration is how long the Lease is valid after its last renewal, in whole seconds; 15 s by default.
	Duration time.Duration
	// Log tells who leads.
	Log *slog.Logger
}

// defaultDuration is that of Kubernetes' own components.
const defaultDuration = 15 * time.Second

// Elector is one candidate.
type Elector struct {
	config Config
	fence  *fence
	leases coordinationclient.LeaseInterface
	seen   *sighting

	// Of Run alone.
	told        string    // the holder that was logged last
	ours, tried leaseTerm // the last term of this process, and the last that it asked for: the answer may have been lost
}

// New makes a candidate; Run has it campaign.
func New(config Config) (*Elector, error) {
	if config.Identity == "" {
		config.Identity, _ = os.Hostname()
	}
	config.Duration = cmp.Or(config.Duration, defaultDuration)
	client, err := kubernetes.NewForConfig(config.REST)
	if err != nil {
		return nil, fmt.Errorf("leader: client: %w", err)
	}
	return &Elector{
		config: config, fence: &fence{}, leases: client.CoordinationV1().Leases(metav1.NamespaceSystem), seen: newSighting(),
	}, nil
}

// Run campaigns until ctx ends. Each time it wins it calls work, whose context ends when leadership does; work must return
// then, and writes with what REST returns. The Lease is given back when ctx ends and work has returned, so that a successor
// need not wait for it to expire; so it is when work returns by itself. An error of work ends Run.
func Run(ctx context.Context, config Config, work func(context.Context, *rest.Config) error) error {
	e, err := New(config)
	if err != nil {
		return err
	}
	return e.Run(ctx, func(ctx context.Context) error { return work(ctx, e.REST()) })
}

// REST is Config.REST for who acts: its writes fail with ErrNotLeader while this candidate does not hold the Lease.
func (e *Elector) REST() *rest.Config {
	config := rest.CopyConfig(e.config.REST)
	config.Wrap(e.fence.wrap)
	return config
}

// Run is the function Run for work that has its clients already. It is called once.
func (e *Elector) Run(ctx context.Context, work func(context.Context) error) error {
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { e.watch(watching) })
	defer watch.Wait()
	defer stop()
	for {
		lease := e.campaign(ctx)
		if lease == nil {
			return nil
		}
		e.config.Log.Info("leadership begins", "lease", e.config.Name)
		err := e.term(ctx, lease, work)
		e.config.Log.Info("leadership ended", "lease", e.config.Name)
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// renewPeriod is how often the holder renews, renewDeadline when it stops if it cannot.
func (e *Elector) renewPeriod() time.Duration   { return e.config.Duration / 3 }
func (e *Elector) renewDeadline() time.Duration { return 2 * e.config.Duration / 3 }

// retryPeriod is how soon a request is made again that has failed.
func (e *Elector) retryPeriod() time.Duration { return min(e.config.Duration/12, time.Second) }
