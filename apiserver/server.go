package apiserver

import (
	"context"
	"crypto"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"

	"kontiki/apiserver/admission"
	"kontiki/apiserver/admission/policy"
	"kontiki/apiserver/admission/webhook"
	"kontiki/apiserver/aggregation"
	"kontiki/apiserver/audit"
	"kontiki/apiserver/customresources"
	"kontiki/apiserver/gather"
	"kontiki/apiserver/nodeproxy"
	"kontiki/apiserver/openapi"
	"kontiki/apiserver/ownership"
	"kontiki/apiserver/rbac"
	"kontiki/apiserver/registry"
	"kontiki/apiserver/storage"
	"kontiki/apiserver/tokens"
	"kontiki/internal/lingering"
	"kontiki/internal/livetls"
	"kontiki/raftstore"
)

// Config of a Server.
type Config struct {
	// KV is the store; Table the resources that are served.
	KV    storage.KV
	Table *registry.Table
	// TLS has the server certificate and, in ClientCAs, who signs the client certificates. New sets
	// ClientAuth to VerifyClientCertIfGiven and offers HTTP/2. Its GetConfigForClient may follow renewed certificates.
	TLS *tls.Config
	// ClientCA returns the PEM of TLS.ClientCAs, for servers that extend this one (clientca.go). Nil publishes none.
	ClientCA func() []byte
	// FrontProxyTLS has the client certificate by which aggregated API servers know this one (package aggregation); FrontProxyCA
	// returns the PEM of the authority that signs it, for the name FrontProxyName: they are told both. Nil: they are told nothing.
	FrontProxyTLS  livetls.Source
	FrontProxyCA   func() []byte
	FrontProxyName string
	// NodeTLS has the client certificate that node agents know this server by.
	NodeTLS livetls.Source
	// Access says who else is known and who else decides.
	Access AccessConfig
	// Admission says which admission plugins run.
	Admission admission.Config
	// TokenKeys verify the tokens of service accounts, the first one signs them: ECDSA P-256, the same on all servers.
	// SetTokenKeys changes them.
	TokenKeys []crypto.Signer
	// TokenIssuer is the issuer that tokens name; empty means DefaultTokenIssuer.
	TokenIssuer string
	// AdvertiseAddress and AdvertisePort are where pods reach this server: the endpoint of the
	// Service default/kubernetes. No address, or one that pods cannot reach (loopback), means no endpoint.
	AdvertiseAddress netip.Addr
	AdvertisePort    uint16 // 0 means 6443
	// ServiceCIDR's first address is the Service default/kubernetes; the zero value means 10.96.0.0/16.
	ServiceCIDR netip.Prefix
	// ClusterDNS is where nodes serve DNS to their pods, an address of each service range: the Service kube-system/kube-dns
	// keeps them. Empty: there is none.
	ClusterDNS []netip.Addr
	// SecondServiceCIDR is of the other IP family, as in registry.Options.
	SecondServiceCIDR netip.Prefix
	// MaxBodyBytes bounds request bodies; 0 means 3 MiB, as in Kubernetes.
	MaxBodyBytes int64
	// AnswerTime is how long a client may take over reading an answer; 0 means 60 s.
	AnswerTime time.Duration
	// StopGrace is how long a stop waits for requests that are being served; 0 means 10 s.
	StopGrace time.Duration
	// HistoryRetention is how long the store keeps history; 0 means for ever. It is what clients are told, not
	// what makes the store forget.
	HistoryRetention time.Duration
	// Storage configures the watch caches.
	Storage storage.Config
	// Audit is what is recorded of requests, and where; without a sink nothing is.
	Audit audit.Config
	// Paths are served in addition, to those whom roles let have them (nonResourceURLs).
	Paths map[string]http.Handler
	// Collectors are shown on /metrics beside the server's own.
	Collectors []prometheus.Collector
	Log        *slog.Logger // nil discards
}

func (c Config) withDefaults() Config {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Log = slog.New(requestLog{c.Log.Handler()})
	if c.Audit.Log == nil {
		c.Audit.Log = c.Log
	}
	if c.Storage.Log == nil {
		c.Storage.Log = c.Log
	}
	if c.Storage.Watch.Retention == "" {
		c.Storage.Watch.Retention = c.retention()
	}
	if c.AdvertisePort == 0 {
		c.AdvertisePort = 6443
	}
	if c.TokenIssuer == "" {
		c.TokenIssuer = DefaultTokenIssuer
	}
	if !c.ServiceCIDR.IsValid() {
		c.ServiceCIDR = netip.MustParsePrefix("10.96.0.0/16")
	}
	if c.MaxBodyBytes == 0 {
		c.MaxBodyBytes = defaultMaxBodyBytes
	}
	if c.AnswerTime == 0 {
		c.AnswerTime = defaultAnswerTime
	}
	if c.StopGrace == 0 {
		c.StopGrace = 10 * time.Second
	}
	return c
}

// retention is the rule by which the store forgets, in words.
func (c Config) retention() string {
	if c.HistoryRetention == 0 {
		return "history is kept until somebody compacts the store (--history-retention 0)"
	}
	return "history is kept for " + c.HistoryRetention.String() + " (--history-retention), unless somebody compacts the store before"
}

// Server is one API server. Its handlers may be used from the moment New returns; Serve also keeps
// the bootstrap objects.
type Server struct {
	config      Config
	log         *slog.Logger
	kv          storage.KV
	table       *registry.Table
	storage     *storage.Backend
	codecs      serializer.CodecFactory
	schemas     *openapi.Base
	owners      *ownership.Tracker
	metrics     *metrics
	inFlight    *inFlight
	bodies      *bodies
	nodes       *nodeproxy.Proxy // streams to node agents and pods
	tokens      *tokens.Issuer
	admission   *admission.Chain
	webhooks    *webhook.Webhooks
	policies    *policy.Policies
	audit       *audit.Auditor // nil if nothing is recorded
	converter   *customresources.Webhooks
	customs     *definitions
	aggregated  *aggregation.Aggregator
	apiServices *apiServices
	policy      atomic.Pointer[rbac.Policy]
	nodePods    nodePods
	storeCheck  *storeCheck
	handler     http.Handler
	access

	stopping context.Context // done when a stop begins: watches end
	stop     context.CancelFunc
	booted   atomic.Bool
}

// New makes a server over a store. The caller must Close it.
func New(config Config) (*Server, error) {
	config = config.withDefaults()
	if config.TLS == nil || len(config.TLS.Certificates) == 0 && config.TLS.GetCertificate == nil {
		return nil, ErrNoCertificate
	}
	issuer, err := tokens.New(tokens.Config{URL: config.TokenIssuer, Keys: config.TokenKeys})
	if err != nil {
		return nil, err
	}
	s := &Server{
		config:  config,
		tokens:  issuer,
		log:     config.Log,
		kv:      config.KV,
		table:   config.Table,
		storage: storage.Open(config.KV, config.Storage),
		codecs:  serializer.NewCodecFactory(config.Table.Scheme(), serializer.WithSerializer(cbor.NewSerializerInfo)),
		metrics: newMetrics(),
		nodes:   nodeproxy.New(nodeproxy.Config{TLS: config.NodeTLS, Log: config.Log}),
	}
	s.schemas = openapi.NewBase(s.table)
	s.owners = ownership.New(s.table, s.schemas)
	s.policy.Store(rbac.Compile(rbac.Objects{})) // nobody but masters may do anything until the roles are read
	if err := s.openAccess(config.Access); err != nil {
		return nil, err
	}
	s.inFlight, s.bodies = newInFlight(s.metrics), newBodies(s.metrics)
	s.metrics.registry.MustRegister(config.Collectors...)
	config.Admission.Dynamic = s.dynamicAdmission()
	if s.admission, err = admission.New(lookup{s}, config.Admission); err != nil {
		return nil, err
	}
	if s.audit, err = audit.Open(config.Audit); err != nil {
		return nil, err
	}
	s.metrics.registry.MustRegister(s.audit.Collectors()...)
	s.converter = customresources.NewWebhooks(s.endpointOf)
	s.storeCheck = newStoreCheck(func(ctx context.Context) error {
		_, err := s.kv.Revision(ctx)
		return err
	})
	s.customs = newDefinitions(s)
	s.openAggregation()
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.handler = chain(s.routes(), s.entry()...)
	return s, nil
}

// Handler serves the API. Users are told by r.TLS, so it is of use behind TLS only.
func (s *Server) Handler() http.Handler { return s.handler }

// Ready reports whether the bootstrap objects exist and no stop is under way: what /readyz says, but
// for the store.
func (s *Server) Ready() bool { return s.bootstrapped() == nil && s.notStopping() == nil }

// Close ends all watches and releases the storage. It does not close the store. Call it after Serve
// has returned.
func (s *Server) Close() {
	s.stop()
	s.nodes.Close()
	s.aggregated.Close()
	s.customs.arrival.close()
	s.converter.Close()
	s.webhooks.Close()
	s.storage.Close()
	if err := s.audit.Close(); err != nil {
		s.log.Error("audit events are lost", "err", err)
	}
}

var (
	errNotBootstrapped = errors.New("bootstrap objects are not written yet")
	errStopping        = errors.New("the server is stopping")
)

func (s *Server) bootstrapped() error {
	if !s.booted.Load() {
		return errNotBootstrapped
	}
	return nil
}

func (s *Server) notStopping() error {
	if s.stopping.Err() != nil {
		return errStopping
	}
	return nil
}

// How long a connection may take over headers and lie idle. There is no limit on writing as such:
// watches last; each answer has its own (answertime.go).
const (
	headerTimeout  = 32 * time.Second
	idleTimeout    = 3 * time.Minute
	maxHeaderBytes = 64 << 10
)

// Serve accepts connections on the listener, which it wraps in TLS, until ctx ends; then it ends all
// watches, waits for the other requests for at most StopGrace, and returns nil.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler:           s.handler,
		ConnContext:       withConnection,
		TLSConfig:         livetls.Server(s.config.TLS, s.secure),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreamsPerConnection},
	}
	bootstrap, cancel := context.WithCancel(raftstore.WithOrigin(ctx, ownOrigin))
	var background sync.WaitGroup
	var present sync.WaitGroup // what keeps this server among the endpoints
	present.Go(func() { s.keepBootstrapObjects(bootstrap) })
	present.Go(func() { s.keepPlace(bootstrap) })
	background.Go(func() { s.follow(bootstrap, "flow control", flowObjects, s.configureFlows) })
	background.Go(func() { s.follow(bootstrap, "authorization", policyObjects, s.loadPolicy) })
	background.Go(func() { s.follow(bootstrap, "webhooks", webhookObjects, s.loadWebhooks) })
	background.Go(func() { s.follow(bootstrap, "admission policies", admissionPolicyObjects, s.loadAdmissionPolicies) })
	background.Go(func() { s.follow(bootstrap, "pods of nodes", nil, s.followPods) })
	background.Go(func() { s.followAccessFiles(bootstrap) })
	background.Go(func() { s.keepDefinitions(bootstrap) })
	background.Go(func() { s.apiServices.run(bootstrap) })
	background.Go(func() { s.customs.finish(bootstrap) })
	background.Go(func() { s.customs.keepForgetting(bootstrap) })
	defer func() {
		cancel()
		present.Wait()
		background.Wait()
	}()

	closing := lingering.Listen(listener)
	gathered := gather.Listen(closing)
	failed := make(chan error, 1)
	go func() { failed <- server.ServeTLS(gathered, "", "") }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	present.Wait()
	s.leavePlace()
	s.stop()
	defer drain(gathered, closing)
	if err := shutdown(server, s.config.StopGrace); err != nil {
		s.log.Warn("requests were cut short by the stop", "err", err)
		return server.Close()
	}
	return nil
}

// drainTime is how long clients may take over the last bytes of answers when the server has stopped.
const drainTime = time.Second

func drain(gathered *gather.Listener, closing *lingering.Listener) {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	gathered.Drain(ctx) // of what is in this process's memory
	closing.Drain(ctx)  // of what the kernel would drop if the clients went on sending
}

// secure is what the server wants of every connection. The front proxy's certificate comes through the handshake as well.
func (s *Server) secure(config *tls.Config) {
	if config.ClientCAs != nil {
		config.ClientCAs = config.ClientCAs.Clone()
		s.frontProxy.AddRoots(config.ClientCAs)
	}
	config.ClientAuth = tls.VerifyClientCertIfGiven
	config.NextProtos = []string{"h2", "http/1.1"}
}

// SetTokenKeys has tokens of service accounts signed with another key, and verified with its public half and the others.
func (s *Server) SetTokenKeys(signer crypto.Signer, others ...crypto.PublicKey) error {
	return s.tokens.SetKeys(signer, others...)
}

// shutdown waits for the requests that are being served, at most for grace. net/http tells its HTTP/2 connections to
// end when Shutdown begins, and never again: one that a client is just opening then, and sends nothing on, would
// hold up the stop for all of the grace. So Shutdown begins anew every second.
func shutdown(server *http.Server, grace time.Duration) error {
	for end := time.Now().Add(grace); ; {
		left := time.Until(end)
		ctx, cancel := context.WithTimeout(context.Background(), min(left, time.Second))
		err := server.Shutdown(ctx)
		cancel()
		if err == nil || left <= time.Second {
			return err
		}
	}
}

// maxStreamsPerConnection is HTTP/2's limit of requests on one connection: enough for the watches of
// a controller manager, which share a connection.
const maxStreamsPerConnection = 1000

// storeOf returns the storage of a row.
func (s *Server) storeOf(r *registry.Resource) *storage.Store { return s.storage.Store(r) }
