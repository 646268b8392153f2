//lint:file-ignore SA1019 Endpoints are deprecated, and clients still read them: this file is about them.

package controllers

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/endpointslice"
	endpointsliceutil "k8s.io/endpointslice/util"
)

const (
	// endpointsManagedBy marks the Endpoints that are ours; others were written by users and are left alone.
	endpointsManagedBy      = "endpoints.kubernetes.io/managed-by"
	endpointsControllerName = "endpoint-controller"
	// maxEndpoints is how many addresses an Endpoints object holds at most; a longer list is cut, ready addresses first, and
	// annotated. EndpointSlices have no such limit.
	maxEndpoints = 1000
)

// endpoints lists the pods of every Service with a selector in core/v1 Endpoints, the older form of EndpointSlices: one
// object per Service, terminating pods left out, addresses split by readiness.
type endpoints struct {
	client    kubernetes.Interface
	services  corelisters.ServiceLister
	pods      corelisters.PodLister
	endpoints corelisters.EndpointsLister
}

func addEndpoints(m *manager) error {
	client, err := m.client("endpoints")
	if err != nil {
		return err
	}
	core := m.shared.Core().V1()
	e := &endpoints{client: client, services: core.Services().Lister(), pods: core.Pods().Lister(), endpoints: core.Endpoints().Lister()}
	c := m.add("endpoints", 5, e)
	watch(c, core.Services().Informer(), requestFor[*corev1.Service])
	watch(c, core.Endpoints().Informer(), requestFor[*corev1.Endpoints])
	watchPodsOfServices(c, core.Pods().Informer(), core.Services().Lister())
	return nil
}

func (e *endpoints) Reconcile(ctx context.Context, req Request) (Result, error) {
	current, err := e.endpoints.Endpoints(req.Namespace).Get(req.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return Result{}, err
	}
	if apierrors.IsNotFound(err) {
		current = nil
	}
	service, err := e.services.Services(req.Namespace).Get(req.Name)
	if apierrors.IsNotFound(err) {
		return Result{}, e.deleteOurs(ctx, current)
	}
	if err != nil || service.Spec.Type == corev1.ServiceTypeExternalName || service.Spec.Selector == nil {
		return Result{}, err
	}
	pods, err := e.pods.Pods(req.Namespace).List(labels.SelectorFromSet(service.Spec.Selector))
	if err != nil {
		return Result{}, err
	}
	return Result{}, e.write(ctx, current, endpointsOf(service, pods))
}

// deleteOurs removes Endpoints whose Service is gone. They carry no owner reference, as upstream's do not.
func (e *endpoints) deleteOurs(ctx context.Context, current *corev1.Endpoints) error {
	if current == nil || current.Labels[endpointsManagedBy] != endpointsControllerName {
		return nil
	}
	return ignoreNotFound(e.client.CoreV1().Endpoints(current.Namespace).Delete(ctx, current.Name, exactly(current)))
}

func (e *endpoints) write(ctx context.Context, current, want *corev1.Endpoints) error {
	if current == nil {
		_, err := e.client.CoreV1().Endpoints(want.Namespace).Create(ctx, want, metav1.CreateOptions{})
		return ignoreExistsOrTerminating(err)
	}
	if equality.Semantic.DeepEqual(current.Subsets, want.Subsets) && equality.Semantic.DeepEqual(current.Labels, want.Labels) &&
		current.Annotations[corev1.EndpointsOverCapacity] == want.Annotations[corev1.EndpointsOverCapacity] {
		return nil
	}
	update := current.DeepCopy()
	update.Labels, update.Subsets = want.Labels, want.Subsets
	delete(update.Annotations, corev1.EndpointsOverCapacity)
	if update.Annotations == nil {
		update.Annotations = map[string]string{}
	}
	maps.Copy(update.Annotations, want.Annotations)
	_, err := e.client.CoreV1().Endpoints(want.Namespace).Update(ctx, update, metav1.UpdateOptions{})
	return err
}

// endpointsOf is what the Endpoints of a Service should be.
func endpointsOf(service *corev1.Service, pods []*corev1.Pod) *corev1.Endpoints {
	out := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{
		Namespace: service.Namespace, Name: service.Name, Labels: maps.Clone(service.Labels), Annotations: map[string]string{},
	}}
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	out.Labels[endpointsManagedBy] = endpointsControllerName
	delete(out.Labels, corev1.IsHeadlessService)
	if service.Spec.ClusterIP == corev1.ClusterIPNone || service.Spec.ClusterIP == "" {
		out.Labels[corev1.IsHeadlessService] = ""
	}
	out.Subsets = subsetsOf(service, pods)
	if truncate(out.Subsets) {
		out.Annotations[corev1.EndpointsOverCapacity] = "truncated"
	}
	return out
}

// subsetsOf groups the pods by their ports: a named port may have another number in another pod. Everything is sorted, so
// that equal sets are equal objects.
func subsetsOf(service *corev1.Service, pods []*corev1.Pod) []corev1.EndpointSubset {
	groups := map[string]*corev1.EndpointSubset{}
	for _, pod := range pods {
		ip := podIPFor(service, pod)
		if ip == "" || !endpointsliceutil.ShouldPodBeInEndpoints(pod, service.Spec.PublishNotReadyAddresses) {
			continue
		}
		ports := podPorts(service, pod)
		if len(ports) == 0 && len(service.Spec.Ports) > 0 {
			continue // none of the Service's ports is one of this pod
		}
		key := fmt.Sprint(ports)
		group := groups[key]
		if group == nil {
			group = &corev1.EndpointSubset{Ports: ports}
			groups[key] = group
		}
		if service.Spec.PublishNotReadyAddresses || podReady(pod) {
			group.Addresses = append(group.Addresses, addressOf(service, pod, ip))
		} else {
			group.NotReadyAddresses = append(group.NotReadyAddresses, addressOf(service, pod, ip))
		}
	}
	var subsets []corev1.EndpointSubset
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		slices.SortFunc(groups[key].Addresses, byIP)
		slices.SortFunc(groups[key].NotReadyAddresses, byIP)
		subsets = append(subsets, *groups[key])
	}
	return subsets
}

func byIP(a, b corev1.EndpointAddress) int { return cmp.Compare(a.IP, b.IP) }

// podIPFor is the pod's address of the Service's (first) IP family; IPv4 if the Service does not say.
func podIPFor(service *corev1.Service, pod *corev1.Pod) string {
	wantV6 := len(service.Spec.IPFamilies) > 0 && service.Spec.IPFamilies[0] == corev1.IPv6Protocol
	candidates := []string{pod.Status.PodIP}
	for _, ip := range pod.Status.PodIPs {
		candidates = append(candidates, ip.IP)
	}
	for _, ip := range candidates {
		if parsed, err := netip.ParseAddr(ip); err == nil && parsed.Is6() == wantV6 {
			return ip
		}
	}
	return ""
}

func podPorts(service *corev1.Service, pod *corev1.Pod) []corev1.EndpointPort {
	var ports []corev1.EndpointPort
	for i := range service.Spec.Ports {
		port := &service.Spec.Ports[i]
		number, err := endpointslice.FindPort(pod, port)
		if err != nil {
			continue // a named port that this pod does not have
		}
		ports = append(ports, corev1.EndpointPort{Name: port.Name, Port: int32(number), Protocol: port.Protocol, AppProtocol: port.AppProtocol})
	}
	return ports
}

func addressOf(service *corev1.Service, pod *corev1.Pod, ip string) corev1.EndpointAddress {
	address := corev1.EndpointAddress{
		IP:        ip,
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
	}
	if pod.Spec.NodeName != "" {
		address.NodeName = &pod.Spec.NodeName
	}
	if endpointsliceutil.ShouldSetHostname(pod, service) {
		address.Hostname = pod.Spec.Hostname
	}
	return address
}

// truncate cuts the subsets to maxEndpoints addresses and says whether it had to.
func truncate(subsets []corev1.EndpointSubset) (cut bool) {
	left := maxEndpoints
	for _, list := range []func(*corev1.EndpointSubset) *[]corev1.EndpointAddress{
		func(s *corev1.EndpointSubset) *[]corev1.EndpointAddress { return &s.Addresses },
		func(s *corev1.EndpointSubset) *[]corev1.EndpointAddress { return &s.NotReadyAddresses },
	} {
		for i := range subsets {
			addresses := list(&subsets[i])
			if len(*addresses) > left {
				*addresses, cut = (*addresses)[:left], true
			}
			left -= len(*addresses)
		}
	}
	return cut
}
