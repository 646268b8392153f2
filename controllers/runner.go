package controllers

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"kontiki/internal/apiclient"
)

// Retries of a failing request wait 5 ms, 10 ms, 20 ms, … up to retryMax, or what its manager says. Short at first, because most failures are
// conflicts that the next informer event resolves.
const (
	retryBase = 5 * time.Millisecond
	retryMax  = 30 * time.Second
)

// Request names the object to look at. It holds no state and no reason: those are read when the request is served.
type Request struct {
	types.NamespacedName
}

// Result says when to look again although nothing changed; zero means not before an event.
type Result struct {
	RequeueAfter time.Duration
}

// Reconciler brings one object closer to its spec. It has the shape of controller-runtime's reconcile.Reconciler. An
// error puts the request back with a growing delay.
type Reconciler interface {
	Reconcile(ctx context.Context, req Request) (Result, error)
}

// controller feeds one Reconciler: event handlers put requests into the queue, workers take them out. The queue is
// bounded by the number of distinct objects, since a request that already waits is not added twice.
type controller struct {
	name       string
	reconciler Reconciler
	workers    int
	queue      workqueue.TypedRateLimitingInterface[Request]
	log        *slog.Logger
	leave      []func() // takes its handlers from the informers
}

func newController(name string, workers int, r Reconciler, retryMax time.Duration, log *slog.Logger) *controller {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[Request](retryBase, retryMax)
	return &controller{
		name: name, reconciler: r, workers: workers, log: log.With("controller", name),
		queue: workqueue.NewTypedRateLimitingQueue(limiter),
	}
}

// run works until ctx ends, and returns when the last worker has. It is called once.
func (c *controller) run(ctx context.Context) {
	defer func() {
		for _, leave := range c.leave {
			leave()
		}
	}()
	stop := context.AfterFunc(ctx, c.queue.ShutDown)
	defer stop()
	var workers sync.WaitGroup
	for range c.workers {
		workers.Go(func() {
			for c.processNext(ctx) {
			}
		})
	}
	workers.Wait()
}

func (c *controller) processNext(ctx context.Context) bool {
	req, closed := c.queue.Get()
	if closed {
		return false
	}
	defer c.queue.Done(req)
	result, err := c.reconcile(ctx, req)
	switch {
	case ctx.Err() != nil:
		return false
	case err != nil:
		c.logFailure(req, err)
		c.queue.AddRateLimited(req)
	case result.RequeueAfter > 0:
		c.queue.Forget(req)
		c.queue.AddAfter(req, result.RequeueAfter)
	default:
		c.queue.Forget(req)
	}
	return true
}

// reconcile turns a panic into an error: one strange object must not take down a server that also holds the store.
func (c *controller) reconcile(ctx context.Context, req Request) (result Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("reconciler panicked", "object", req.String(), "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("%w: %v", ErrPanic, p)
		}
	}()
	return c.reconciler.Reconcile(ctx, req)
}

// logFailure is quiet about conflicts: they are how optimistic concurrency works.
func (c *controller) logFailure(req Request, err error) {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		c.log.Debug("reconcile again", "object", req.String(), "reason", err)
		return
	}
	c.log.Warn("reconcile failed", "object", req.String(), "err", err, "retries", c.queue.NumRequeues(req))
}

func (c *controller) enqueue(reqs ...Request) {
	for _, req := range reqs {
		c.queue.Add(req)
	}
}

// watch asks for requests whenever an object of the informer changes. An update maps the old version too, because what it
// pointed at (a former owner, a former label) may need a look as well.
func watch[T metav1.Object](c *controller, informer cache.SharedIndexInformer, toRequests func(T) []Request) {
	watchUpdates(c, informer, toRequests, func(_, _ T) bool { return true })
}

// watchUpdates is watch for objects that change often without mattering: matters decides for updates.
func watchUpdates[T metav1.Object](
	c *controller, informer cache.SharedIndexInformer, toRequests func(T) []Request, matters func(before, after T) bool,
) {
	c.listen(informer, cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { c.enqueue(toRequests(obj.(T))...) },
		UpdateFunc: func(before, after any) {
			if matters(before.(T), after.(T)) {
				c.enqueue(toRequests(before.(T))...)
				c.enqueue(toRequests(after.(T))...)
			}
		},
		DeleteFunc: func(obj any) {
			if gone, ok := apiclient.LastKnown[T](obj); ok {
				c.enqueue(toRequests(gone)...)
			}
		},
	})
}

// listen adds a handler to an informer until the controller stops.
func (c *controller) listen(informer cache.SharedIndexInformer, handler cache.ResourceEventHandler) {
	registration, err := informer.AddEventHandler(handler)
	if err != nil { // only of an informer that was stopped, and those run longer than controllers
		panic(fmt.Sprintf("controllers: %s: handler added to a stopped informer: %v", c.name, err))
	}
	c.leave = append(c.leave, func() { _ = informer.RemoveEventHandler(registration) }) // fails only if it was not there
}

// requestFor asks for the object itself.
func requestFor[T metav1.Object](obj T) []Request {
	return []Request{{types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}}}
}

// requestForController asks for the object's controller, if that is of the kind.
func requestForController[T metav1.Object](kind string) func(T) []Request {
	return func(obj T) []Request {
		owner := metav1.GetControllerOfNoCopy(obj)
		if owner == nil || owner.Kind != kind {
			return nil
		}
		return []Request{{types.NamespacedName{Namespace: obj.GetNamespace(), Name: owner.Name}}}
	}
}

// named is the request for a cluster-scoped object.
func named(name string) Request { return Request{types.NamespacedName{Name: name}} }
