package scheduler

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"kontiki/controllers/leader"
	"kontiki/internal/apiclient"
)

// Name is the spec.schedulerName of the pods that are ours; pods of other names are left alone.
const Name = corev1.DefaultSchedulerName

// parallelWrites is how many bindings and conditions are being written at once; the loop waits for a free place.
const parallelWrites = 32

// Config says where the API server is. The zero value of every field but REST is usable.
type Config struct {
	// REST reaches the API server with the identity system:kube-scheduler. Required.
	REST *rest.Config
	// LeaderElect makes Run wait for the Lease kube-system/kontiki-scheduler. Off, there must be only one.
	LeaderElect bool
	// Identity names this process in the Lease; the host name by default.
	Identity string
	// Log discards when nil.
	Log *slog.Logger
}

// Run schedules until ctx ends, then returns nil when the last binding is through. An API server that is not up yet is
// waited for.
func Run(ctx context.Context, config Config) error {
	if config.REST == nil {
		return fmt.Errorf("%w: REST is nil", ErrConfig)
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if !config.LeaderElect {
		return runTerm(ctx, config)
	}
	return leader.Run(ctx, leader.Config{
		REST: config.REST, Name: "kontiki-scheduler", Identity: config.Identity, Log: config.Log,
	}, func(ctx context.Context, fenced *rest.Config) error {
		config := config
		config.REST = fenced
		return runTerm(ctx, config)
	})
}

// scheduler is one term's state.
type scheduler struct {
	client     kubernetes.Interface
	log        *slog.Logger
	recorder   record.EventRecorder
	services   corelisters.ServiceLister
	namespaces corelisters.NamespaceLister
	cache      *cache
	queue      *queue
}

func runTerm(ctx context.Context, config Config) error {
	client, err := kubernetes.NewForConfig(apiclient.Config(config.REST, "scheduler/kontiki")) // parallelWrites bounds the load
	if err != nil {
		return fmt.Errorf("scheduler: client: %w", err)
	}
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: client.CoreV1().Events("")})
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(apiclient.DropManagedFields))
	core := factory.Core().V1()
	s := &scheduler{
		client: client, log: config.Log, services: core.Services().Lister(), namespaces: core.Namespaces().Lister(),
		recorder: broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: Name}),
		cache:    newCache(), queue: newQueue(),
	}
	synced, err := s.handlers(core)
	if err != nil {
		return err
	}
	core.Services().Informer()
	core.Namespaces().Informer()
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	factory.WaitForCacheSync(ctx.Done())
	if !waitAll(ctx, synced) {
		return nil
	}
	s.log.Info("scheduler started")
	s.loop(ctx)
	return nil
}

// loop decides on one pod after the other. What follows from a decision is written in the background; loop returns when
// that has ended too.
func (s *scheduler) loop(ctx context.Context) {
	var writes sync.WaitGroup
	defer writes.Wait()
	places := make(chan struct{}, parallelWrites)
	for {
		pod, ok := s.queue.pop(ctx)
		if !ok {
			return
		}
		node, why := s.choose(pod)
		if node == "" {
			s.queue.park(pod.UID)
		} else {
			s.cache.setPod(pod, node) // assumed
		}
		places <- struct{}{}
		writes.Go(func() {
			defer func() { <-places }()
			if node == "" {
				s.explain(ctx, pod, why)
			} else {
				s.bind(ctx, pod, node)
			}
		})
	}
}

// choose returns the best node for the pod, or why there is none.
func (s *scheduler) choose(pod *corev1.Pod) (node string, why *unschedulable) {
	info := newPodInfo(pod)
	services, err := s.services.Services(pod.Namespace).List(labels.Everything())
	if err != nil {
		services = nil // the lister reads memory and does not fail; without services spreading goes by owner alone
	}
	like := sameApplication(pod, services)
	s.cache.view(func(nodes []*nodeInfo) {
		fitting, reasons := s.fitting(info, nodes)
		if len(fitting) == 0 {
			why = reasons
			return
		}
		node = best(info, fitting, like).name
	})
	return node, why
}

// fitting sorts the nodes into those that can run the pod and the reasons of the others.
func (s *scheduler) fitting(pod *podInfo, nodes []*nodeInfo) ([]*nodeInfo, *unschedulable) {
	reasons := &unschedulable{nodes: len(nodes), count: map[string]int{}}
	affinity := newInterpod(pod, nodes, s.namespaceLabels)
	var fitting []*nodeInfo
	for _, node := range nodes {
		objections := objections(pod, node)
		if objections == nil {
			objections = affinity.objections(pod, node)
		}
		if objections == nil {
			fitting = append(fitting, node)
		}
		reasons.add(objections)
	}
	return fitting, reasons
}

func objections(pod *podInfo, node *nodeInfo) []string {
	for _, fits := range nodeFilters {
		if why := fits(pod, node); len(why) > 0 {
			return why
		}
	}
	return nil
}

func (s *scheduler) namespaceLabels(name string) labels.Set {
	namespace, err := s.namespaces.Get(name)
	if err != nil {
		return nil
	}
	return namespace.Labels
}

// bind tells the API server. If that fails the pod's place is given back, unless the answer was lost and the binding may
// have happened: then what the server has counts.
func (s *scheduler) bind(ctx context.Context, pod *corev1.Pod, node string) {
	err := s.client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
	if err == nil {
		s.queue.remove(pod.UID)
		s.recorder.Eventf(pod, corev1.EventTypeNormal, "Scheduled", "Successfully assigned %s/%s to %s", pod.Namespace, pod.Name, node)
		return
	}
	live, getErr := s.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if getErr == nil && live.UID == pod.UID && live.Spec.NodeName != "" {
		s.podSeen(nil, live)
		return
	}
	s.cache.removePod(pod.UID)
	if apierrors.IsNotFound(getErr) || getErr == nil && live.UID != pod.UID || ctx.Err() != nil {
		s.queue.remove(pod.UID)
		return
	}
	s.log.Warn("binding failed", "pod", pod.Namespace+"/"+pod.Name, "node", node, "err", err)
	s.recorder.Eventf(pod, corev1.EventTypeWarning, "FailedScheduling", "binding rejected: %v", err)
	s.queue.retry(pod.UID)
	s.queue.wake() // its place is free again
}
