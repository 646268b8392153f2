package controllers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"k8s.io/client-go/rest"

	"kontiki/controllers/leader"
)

// Config says where the API server is and how to run. The zero value of every field but REST is usable.
type Config struct {
	// REST reaches the API server with the identity system:kube-controller-manager. Required.
	REST *rest.Config
	// RootCA returns the PEM of the cluster's CA, published to every namespace as kube-root-ca.crt. It may change. Nil
	// publishes none.
	RootCA func() []byte
	// Signer signs approved requests of Kubernetes' own signers. Nil: nothing is approved or signed.
	Signer CertificateSigner
	// Tokens makes the tokens of Secrets of type kubernetes.io/service-account-token. Nil: such Secrets stay empty.
	Tokens SecretTokens
	// LoadBalancerCIDRs are the addresses for Services of type LoadBalancer. Empty: others give them some, or nobody.
	LoadBalancerCIDRs []netip.Prefix
	// LeaderElect makes Run wait for Leases in kube-system before it works, kontiki-endpoints for what has Services follow
	// their pods and kontiki-controllers for all else, so that several servers can run controllers and one acts. Off, there
	// must be only one.
	LeaderElect bool
	// NodeGrace is how long a node may be silent before it counts as lost; 40 s by default. A node renews its Lease every 10 s.
	NodeGrace time.Duration
	// Identity names this process in the Lease; the host name by default.
	Identity string
	// Log discards when nil.
	Log *slog.Logger
}

// Run starts all reconcilers and blocks until ctx ends, when it returns nil after the last worker has stopped. An API
// server that is not up yet is waited for.
func Run(ctx context.Context, config Config) error {
	if config.REST == nil {
		return fmt.Errorf("%w: REST is nil", ErrConfig)
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if !config.LeaderElect {
		return runTerm(ctx, config, slices.Concat(ofServices, others))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 2)
	go func() { ended <- runWarm(ctx, config) }()
	go func() {
		ended <- leader.Run(ctx, leader.Config{
			REST: config.REST, Name: "kontiki-controllers", Identity: config.Identity, Log: config.Log,
		}, func(ctx context.Context, fenced *rest.Config) error {
			config := config
			config.REST = fenced
			return runTerm(ctx, config, others)
		})
	}()
	err := <-ended
	cancel()
	return errors.Join(err, <-ended)
}

// ofServices are the reconcilers that have Services follow their pods: warm.go. Others are the others.
var (
	ofServices = []adder{addEndpointSlice, addEndpoints, addEndpointMirror}
	others     = []adder{
		addDeployment, addReplicaSet, addReplicationController,
		addNamespace, addServiceAccount, addRootCA, addGarbageCollector,
		addNodeLifecycle, addTaintEviction, addPodGC, addClusterRole,
		addCSRApproving, addCSRSigning, addCSRCleaner, addPodCertificateCleaner, addTokenCleaner,
		addResourceQuota, addProtection, addDisruption,
		addSecretToken, addServiceCIDR,
		addPolicyTypes, addNetworkPolicy, addLoadBalancer,
	}
)

// runTerm builds everything anew, so that a process that loses and regains leadership starts from fresh caches: they have all
// that the leader before it wrote.
func runTerm(ctx context.Context, config Config, reconcilers []adder) error {
	m, err := newManager(config)
	if err != nil {
		return err
	}
	defer m.broadcaster.Shutdown()
	if err := m.addAll(reconcilers); err != nil {
		return err
	}
	return m.run(ctx)
}
