package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kontiki/internal/apiclient"
	"kontiki/nodeagent/podspec"
	"kontiki/nodeagent/policy"
	"kontiki/nodeagent/probe"
	"kontiki/nodeagent/volume"
)

// apiTimeout bounds one request to the API server.
const apiTimeout = 10 * time.Second

// parallelPulls bounds how many images are pulled at once on the node.
const parallelPulls = 3

// Agent is a node's agent. Run does all its work.
type Agent struct {
	cfg     Config
	log     *slog.Logger
	client  kubernetes.Interface
	cri     *criClient
	machine *machine
	metrics *metrics

	pods         *podWorkers // set by Run
	probes       *probe.Manager
	volumes      *volume.Manager
	objects      *objects
	certificates *podCertificates
	checkpoints  *checkpoints
	recorder     record.EventRecorder
	serviceList  *serviceList
	policies     *policy.Enforcer // nil: NetworkPolicies are not enforced here
	// policyTrouble is why they cannot be at the moment.
	policyTrouble atomic.Pointer[error]
	pullSlots     chan struct{}
}

// New checks the configuration and prepares an agent. Nothing runs before Run.
func New(cfg Config) (*Agent, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	restConfig := apiclient.Config(cfg.REST, "agent/kontiki")
	restConfig.QPS, restConfig.Burst = 50, 100 // a node with many pods leaves room for others
	client, err := kubernetes.NewForConfig(restConfig)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	a := &Agent{
		cfg: cfg, log: cfg.Log.With("component", "agent"), client: client,
		cri:     newCRIClient(cfg.Runtime, cfg.NodeName),
		objects: newObjects(client), pullSlots: make(chan struct{}, parallelPulls),
		metrics: newMetrics(),
	}
	a.certificates = newPodCertificates(client, cfg.NodeName)
	a.volumes = &volume.Manager{Root: cfg.DataDir, Tokens: a.objects, Certificates: a.certificates}
	if !cfg.NoMounts {
		a.volumes.Mounter = volume.HostMounter{}
	}
	a.probes = probe.NewManager(a.cri.exec, reporter{a})
	if a.checkpoints, err = newCheckpoints(filepath.Join(cfg.DataDir, "checkpoints"), a.log); err != nil {
		return nil, err
	}
	if a.machine, err = readMachine(cfg.DataDir, cfg.MaxPods); err != nil {
		return nil, err
	}
	return a, nil
}

// Run works until ctx ends, or until the agent's port cannot be served. Containers keep running afterwards.
func (a *Agent) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	version, err := a.cri.Version(ctx, &runtimeapi.VersionRequest{})
	if ctx.Err() != nil {
		return nil // told to stop before it had begun
	}
	if err != nil {
		return fmt.Errorf("container runtime: %w", err)
	}
	a.cri.name = version.RuntimeName

	events := record.NewBroadcaster(record.WithContext(ctx))
	defer events.Shutdown()
	a.recorder = events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "kubelet", Host: a.cfg.NodeName})
	events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: a.client.CoreV1().Events("")})

	a.pods = newPodWorkers(ctx, a)
	factory := informers.NewSharedInformerFactory(a.client, 0)
	a.serviceList = newServiceList(factory)
	podInformer, delivered, err := a.pods.informer()
	if err != nil {
		return err
	}
	clusterNetwork := a.openClusterNetwork(factory, podInformer)
	a.policies = clusterNetwork.rules
	node := newNodeReporter(a)
	group.Go(func() error { return a.serve(ctx) })
	group.Go(func() error { node.run(ctx); return nil })
	group.Go(func() error { a.watchRuntime(ctx); return nil })
	group.Go(func() error { a.collectGarbage(ctx); return nil })
	factory.Start(ctx.Done())
	group.Go(func() error { clusterNetwork.run(ctx, a.log); return nil })
	group.Go(func() error { podInformer.RunWithContext(ctx); return nil })
	a.awaitPods(ctx, podInformer, delivered)
	<-ctx.Done()
	err = group.Wait()
	factory.Shutdown()
	a.pods.wg.Wait()
	a.probes.Wait()
	return err
}

// UnmountVolumes removes the mounts of all pods below the data directory of an agent that does not run, and leaves their
// files: for hosts that stop the containers too and want nothing left on the machine.
func UnmountVolumes(dataDir string) error {
	m := &volume.Manager{Root: dataDir, Mounter: volume.HostMounter{}}
	uids, err := m.Pods()
	for _, uid := range uids {
		err = errors.Join(err, m.Unmount(uid))
	}
	return err
}

// listPatience is how long after the start the agent waits for the API's list of pods before it goes on with those that it
// remembers.
const listPatience = 3 * time.Second

// awaitPods has pods run: those of the API or, while the API server is away, those of the checkpoints.
func (a *Agent) awaitPods(ctx context.Context, pods cache.SharedIndexInformer, delivered cache.InformerSynced) {
	patient, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	if !cache.WaitForCacheSync(patient.Done(), delivered) && ctx.Err() == nil {
		a.log.Warn("API server cannot be reached, pods are run from checkpoints")
		a.pods.restore()
	}
	if cache.WaitForCacheSync(ctx.Done(), delivered) {
		a.pods.listed(pods.GetStore().List())
		a.relist(ctx, nil) // what belongs to nobody is found at once, not at the next turn
	}
}

// event records an event about a pod, or about one of its containers.
func (a *Agent) event(pod *corev1.Pod, c *corev1.Container, kind, reason, message string) {
	if pod == nil || pod.Name == "" {
		return
	}
	ref := &corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name,
		UID: pod.UID, ResourceVersion: pod.ResourceVersion}
	if c != nil {
		ref.FieldPath = fmt.Sprintf("spec.containers{%s}", c.Name)
		for i := range pod.Spec.InitContainers {
			if pod.Spec.InitContainers[i].Name == c.Name {
				ref.FieldPath = fmt.Sprintf("spec.initContainers{%s}", c.Name)
			}
		}
	}
	a.recorder.Event(ref, kind, reason, message)
}

// logDir is where the runtime writes the logs of a pod's containers.
func (a *Agent) logDir(pod *corev1.Pod) string {
	return a.logDirOf(pod.Namespace, pod.Name, string(pod.UID))
}

func (a *Agent) logDirOf(namespace, name, uid string) string {
	return filepath.Join(a.cfg.DataDir, "logs", namespace+"_"+name+"_"+uid)
}

func (a *Agent) hostIPs() []string { return a.cfg.NodeIPs }

// hostDNS is the host's resolver configuration, read anew each time: it changes with the network.
func (a *Agent) hostDNS() *runtimeapi.DNSConfig {
	data, err := os.ReadFile(a.cfg.ResolvConf)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		a.log.Warn("resolv.conf could not be read", "file", a.cfg.ResolvConf, "err", err)
	}
	return podspec.ParseResolvConf(string(data))
}

// servicesPatience is how long after the start pods wait for the list of services. Then they start without
// service links: an agent without an API server must still restart containers.
const servicesPatience = 5 * time.Second

// serviceList is the informer of services, for service links.
type serviceList struct {
	lister corelisters.ServiceLister
	synced cache.InformerSynced
	began  time.Time
}

func newServiceList(factory informers.SharedInformerFactory) *serviceList {
	s := factory.Core().V1().Services()
	return &serviceList{lister: s.Lister(), synced: s.Informer().HasSynced, began: time.Now()}
}

// services lists all services, after a short wait if they are just being listed.
func (a *Agent) services(ctx context.Context) ([]*corev1.Service, error) {
	for i := 0; !a.serviceList.synced(); i++ {
		switch {
		case time.Since(a.serviceList.began) > servicesPatience:
			return nil, nil
		case i > 20 || ctx.Err() != nil:
			return nil, errServicesUnknown
		}
		sleep(ctx, 50*time.Millisecond)
	}
	return a.serviceList.lister.List(labels.Everything())
}

// reporter turns what probes find into events and steps.
type reporter struct{ a *Agent }

// ProbeFailed records the event of one failed probe.
func (r reporter) ProbeFailed(uid types.UID, c *corev1.Container, kind probe.Type, err error) {
	if pod := r.a.pods.known()[uid]; pod != nil {
		r.a.event(pod, c, corev1.EventTypeWarning, "Unhealthy", fmt.Sprintf("%s probe failed: %v", kind, err))
	}
}

// ProbeChanged has the pod's worker look.
func (r reporter) ProbeChanged(uid types.UID) { r.a.pods.kick(uid) }
