package controllers

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/endpointslice"
	endpointsliceutil "k8s.io/endpointslice/util"
	"k8s.io/klog/v2"

	"kontiki/internal/apiclient"
)

const (
	sliceControllerName  = "endpointslice-controller.k8s.io"
	maxEndpointsPerSlice = 100
	// staleSlicesRetry is how soon a Service is looked at again whose slices in the cache are older than our last write. The
	// event of that write wakes it sooner.
	staleSlicesRetry = 100 * time.Millisecond
)

// endpointSlice lists the pods of every Service that has a selector, in EndpointSlices. What goes into them, terminating and
// unready pods included, is k8s.io/endpointslice's business; this file decides when to ask it.
type endpointSlice struct {
	services   corelisters.ServiceLister
	pods       corelisters.PodLister
	slices     discoverylisters.EndpointSliceLister
	reconciler *endpointslice.Reconciler
	// tracker plays the part of ownWrites: it knows the generations that our own writes led to.
	tracker  *endpointsliceutil.EndpointSliceTracker
	triggers *endpointsliceutil.TriggerTimeTracker
}

func addEndpointSlice(m *manager) error {
	client, err := m.client("endpointslice")
	if err != nil {
		return err
	}
	core, found := m.shared.Core().V1(), m.shared.Discovery().V1().EndpointSlices()
	tracker := endpointsliceutil.NewEndpointSliceTracker()
	e := &endpointSlice{
		services: core.Services().Lister(), pods: core.Pods().Lister(), slices: found.Lister(), tracker: tracker,
		triggers: endpointsliceutil.NewTriggerTimeTracker(),
		reconciler: endpointslice.NewReconciler(client, core.Nodes().Lister(), maxEndpointsPerSlice, tracker, nil, m.recorder("endpointslice"),
			sliceControllerName, endpointslice.WithPreferSameTrafficDistributionEnabled(true)),
	}
	core.Nodes().Informer()
	c := m.add("endpointslice", 5, e)
	watch(c, core.Services().Informer(), requestFor[*corev1.Service])
	watchPodsOfServices(c, core.Pods().Informer(), core.Services().Lister())
	c.listen(found.Informer(), cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { e.sliceSeen(c, obj.(*discoveryv1.EndpointSlice)) },
		UpdateFunc: func(_, obj any) { e.sliceSeen(c, obj.(*discoveryv1.EndpointSlice)) },
		DeleteFunc: func(obj any) {
			if slice, ok := apiclient.LastKnown[*discoveryv1.EndpointSlice](obj); ok {
				e.sliceGone(c, slice)
			}
		},
	})
	return nil
}

// watchPodsOfServices wakes the Services that a pod belongs to or, by a change of labels, has left, whenever something
// about the pod changes that endpoints show.
func watchPodsOfServices(c *controller, pods cache.SharedIndexInformer, services corelisters.ServiceLister) {
	wake := func(before, after any) {
		keys, err := endpointsliceutil.GetServicesToUpdate(services, endpointsliceutil.GetPodUpdateProjectionKey(before, after))
		if err != nil {
			c.log.Warn("services of a pod", "err", err)
		}
		for key := range keys {
			if namespace, name, err := cache.SplitMetaNamespaceKey(key); err == nil {
				c.enqueue(Request{types.NamespacedName{Namespace: namespace, Name: name}})
			}
		}
	}
	c.listen(pods, cache.ResourceEventHandlerFuncs{
		AddFunc: func(pod any) { wake(nil, pod) },
		UpdateFunc: func(before, after any) {
			if podTerminal(before.(*corev1.Pod)) != podTerminal(after.(*corev1.Pod)) {
				before = nil // the library's comparison does not look at the phase: have all Services of the pod woken
			}
			wake(before, after)
		},
		DeleteFunc: func(pod any) { wake(pod, nil) },
	})
}

// sliceSeen ignores the echo of our own writes, and repairs what somebody else changed.
func (e *endpointSlice) sliceSeen(c *controller, slice *discoveryv1.EndpointSlice) {
	if e.reconciler.ManagedByController(slice) && e.tracker.ShouldSync(slice) {
		c.enqueue(requestForService(slice)...)
	}
}

func (e *endpointSlice) sliceGone(c *controller, slice *discoveryv1.EndpointSlice) {
	if e.reconciler.ManagedByController(slice) && e.tracker.Has(slice) && !e.tracker.HandleDeletion(slice) {
		c.enqueue(requestForService(slice)...)
	}
}

func requestForService(slice *discoveryv1.EndpointSlice) []Request {
	name := slice.Labels[discoveryv1.LabelServiceName]
	if name == "" {
		return nil
	}
	return []Request{{types.NamespacedName{Namespace: slice.Namespace, Name: name}}}
}

func (e *endpointSlice) Reconcile(ctx context.Context, req Request) (Result, error) {
	service, err := e.services.Services(req.Namespace).Get(req.Name)
	if apierrors.IsNotFound(err) { // its slices are owned by it: the garbage collector's
		e.triggers.DeleteService(req.Namespace, req.Name)
		e.reconciler.DeleteService(req.Namespace, req.Name)
		e.tracker.DeleteService(req.Namespace, req.Name)
		return Result{}, nil
	}
	if err != nil || service.Spec.Type == corev1.ServiceTypeExternalName || service.Spec.Selector == nil {
		return Result{}, err
	}
	pods, err := e.pods.Pods(req.Namespace).List(labels.SelectorFromSet(service.Spec.Selector))
	if err != nil {
		return Result{}, err
	}
	existing, err := e.slices.EndpointSlices(req.Namespace).List(labels.SelectorFromSet(labels.Set{
		discoveryv1.LabelServiceName: req.Name, discoveryv1.LabelManagedBy: sliceControllerName,
	}))
	if err != nil {
		return Result{}, err
	}
	existing = slices.DeleteFunc(existing, func(s *discoveryv1.EndpointSlice) bool { return s.DeletionTimestamp != nil })
	if e.tracker.StaleSlices(service, existing) {
		return Result{RequeueAfter: staleSlicesRetry}, nil
	}
	trigger := e.triggers.ComputeEndpointLastChangeTriggerTime(req.Namespace, service, pods)
	return Result{}, e.reconciler.Reconcile(klog.FromContext(ctx), service, pods, existing, trigger)
}
