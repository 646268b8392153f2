package ingress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"kontiki/internal/apiclient"
)

const (
	maxHeaderBytes    = 64 << 10
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxConnections    = 4096 // on each port
	// drain is how long requests may go on when the server is told to stop.
	drain = 5 * time.Second
)

// Config of an ingress server.
type Config struct {
	REST *rest.Config // as the user kontiki:ingress
	// HTTP and HTTPS are listened on; Run closes them.
	HTTP, HTTPS net.Listener
	// Default makes the class the one of Ingresses that name none.
	Default bool
	// LeaderElect has one of several servers write the status of Ingresses; Identity names this one.
	LeaderElect bool
	Identity    string
	Log         *slog.Logger
}

// server is what Run runs.
type server struct {
	config  Config
	log     *slog.Logger
	client  kubernetes.Interface
	factory informers.SharedInformerFactory
	secrets informers.SharedInformerFactory // of certificates alone
	table   atomic.Pointer[table]
	wake    chan struct{} // holds one token while something may have changed
}

// Run serves until ctx ends.
func Run(ctx context.Context, config Config) error {
	client, err := kubernetes.NewForConfig(apiclient.Config(config.REST, "ingress/kontiki"))
	if err != nil {
		return fmt.Errorf("ingress: %w", err)
	}
	return newServer(config, client).run(ctx)
}

func newServer(config Config, client kubernetes.Interface) *server {
	s := &server{
		config: config, log: config.Log, client: client, wake: make(chan struct{}, 1),
		factory: informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(apiclient.DropManagedFields)),
		secrets: informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("type", string(corev1.SecretTypeTLS)).String()
		})),
	}
	s.table.Store(newTable(nil))
	return s
}

func (s *server) run(ctx context.Context) error {
	services, slices := s.factory.Core().V1().Services(), s.factory.Discovery().V1().EndpointSlices()
	secrets := s.secrets.Core().V1().Secrets()
	p := newProxy(&s.table, endpoints{services: services.Lister(), slices: slices.Lister()}, s.log)
	if port := s.config.HTTPS.Addr().(*net.TCPAddr).Port; port != 443 {
		p.httpsPort = ":" + strconv.Itoa(port)
	}
	c := &certificates{table: s.table.Load, secrets: secrets.Lister()}
	synced := []cache.InformerSynced{services.Informer().HasSynced, slices.Informer().HasSynced, secrets.Informer().HasSynced}
	for _, informer := range []cache.SharedIndexInformer{
		s.factory.Networking().V1().Ingresses().Informer(), s.factory.Networking().V1().IngressClasses().Informer(),
		s.factory.Core().V1().Nodes().Informer(),
	} {
		registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { s.changed() }, UpdateFunc: func(_, _ any) { s.changed() }, DeleteFunc: func(any) { s.changed() },
		})
		if err != nil {
			return fmt.Errorf("ingress: %w", err)
		}
		synced = append(synced, registration.HasSynced)
	}
	s.factory.Start(ctx.Done())
	s.secrets.Start(ctx.Done())
	defer s.secrets.Shutdown()
	defer s.factory.Shutdown()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.serve(ctx, s.config.HTTP, p, nil) })
	group.Go(func() error {
		return s.serve(ctx, s.config.HTTPS, p, &tls.Config{GetCertificate: c.get, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}})
	})
	group.Go(func() error {
		if cache.WaitForCacheSync(ctx.Done(), synced...) {
			s.follow(ctx)
		}
		return nil
	})
	group.Go(func() error { return s.keepStatus(ctx, synced) })
	return group.Wait()
}

func (s *server) changed() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// follow makes the table anew after changes. Requests see the old one or the new one.
func (s *server) follow(ctx context.Context) {
	for {
		s.table.Store(newTable(s.ours()))
		select {
		case <-s.wake:
		case <-ctx.Done():
			return
		}
	}
}

// ours are the Ingresses of our classes.
func (s *server) ours() (out []*networkingv1.Ingress) {
	classes := map[string]bool{}
	list, _ := s.factory.Networking().V1().IngressClasses().Lister().List(labels.Everything()) // a lister over a cache does not fail
	for _, c := range list {
		classes[c.Name] = c.Spec.Controller == Controller
	}
	all, _ := s.factory.Networking().V1().Ingresses().Lister().List(labels.Everything())
	for _, i := range all {
		if i.DeletionTimestamp == nil && ours(i, classes) {
			out = append(out, i)
		}
	}
	return out
}

// serve serves one port until ctx ends.
func (s *server) serve(ctx context.Context, listener net.Listener, handler http.Handler, config *tls.Config) error {
	listener = netutil.LimitListener(listener, maxConnections)
	h := &http.Server{
		Handler: handler, ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		TLSConfig: config, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		if h.Shutdown(ctx) != nil {
			_ = h.Close() // what still runs is cut off
		}
	})
	var err error
	if config != nil {
		err = h.ServeTLS(listener, "", "")
	} else {
		err = h.Serve(listener)
	}
	if !stop() {
		<-stopped
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("ingress: %s: %w", listener.Addr(), err)
}
