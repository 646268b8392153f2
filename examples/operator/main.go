package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strconv"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	webv1 "kontiki/examples/operator/api/v1"
	webv1beta1 "kontiki/examples/operator/api/v1beta1"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=site-system,resources=leases,verbs=get;create;update
// +kubebuilder:rbac:groups="",namespace=site-system,resources=events,verbs=create;patch

// options are the flags. controller-runtime adds --kubeconfig.
type options struct {
	namespace  string
	webhookURL string
	certDir    string
}

func main() {
	var o options
	flag.StringVar(&o.namespace, "namespace", "site-system", "where the directory and the leader's lease are")
	flag.StringVar(&o.webhookURL, "webhook-url", "https://127.0.0.1:9443/convert", "where the API server finds the conversion webhook")
	flag.StringVar(&o.certDir, "cert-dir", "site-operator-certs", "the webhook's tls.crt and tls.key; made if they are missing")
	flag.Parse()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	if err := run(ctrl.SetupSignalHandler(), o); err != nil {
		log.Error("the operator ends", "err", err)
		os.Exit(1)
	}
}

// run is the operator until ctx ends.
func run(ctx context.Context, o options) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, webv1.AddToScheme, webv1beta1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	place, port, err := placeOf(o.webhookURL)
	if err != nil {
		return err
	}
	bundle, err := ensureCertificate(o.certDir, place.Hostname())
	if err != nil {
		return fmt.Errorf("certificate of the webhook: %w", err)
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		LeaderElection:                true,
		LeaderElectionID:              "site-operator",
		LeaderElectionNamespace:       o.namespace,
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		WebhookServer:                 webhook.NewServer(webhook.Options{Port: port, CertDir: o.certDir}),
	})
	if err != nil {
		return err
	}
	// Not the manager's own client: that reads from a cache which has not started.
	direct, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	if err := trust(ctx, direct, o.webhookURL, bundle); err != nil {
		return fmt.Errorf("tell the API server of the webhook: %w", err)
	}
	if err := setUp(manager, o); err != nil {
		return err
	}
	return manager.Start(ctx)
}

// setUp puts the reconciler and the conversion into the manager.
func setUp(manager ctrl.Manager, o options) error {
	if err := ctrl.NewWebhookManagedBy(manager, &webv1.Site{}).Complete(); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(manager).
		For(&webv1.Site{}).
		Owns(&appsv1.Deployment{}).
		Complete(&SiteReconciler{
			Client:    manager.GetClient(),
			Events:    manager.GetEventRecorder(owner),
			Directory: Directory{Client: manager.GetClient(), Namespace: o.namespace},
		})
}

// placeOf reads where the webhook is to be found.
func placeOf(text string) (place *url.URL, port int, err error) {
	place, err = url.Parse(text)
	if err != nil {
		return nil, 0, err
	}
	_, number, err := net.SplitHostPort(place.Host)
	if err != nil {
		return nil, 0, fmt.Errorf("--webhook-url needs a port: %w", err)
	}
	port, err = strconv.Atoi(number)
	return place, port, err
}
