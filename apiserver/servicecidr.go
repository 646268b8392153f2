package apiserver

import (
	"context"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kontiki/apiserver/storage"
)

// bootstrapServiceCIDR shows the server's range of cluster IPs as the ServiceCIDR "kubernetes", ready.
func (s *Server) bootstrapServiceCIDR(ctx context.Context) error {
	cidrs := []string{s.config.ServiceCIDR.Masked().String()}
	if second := s.config.SecondServiceCIDR; second.IsValid() {
		cidrs = append(cidrs, second.Masked().String())
	}
	cidr := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: kubernetesName}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: cidrs}}
	if err := s.ensure(ctx, "", cidr, nil); err != nil {
		return err
	}
	t, err := s.targetOf(cidr, "")
	if err != nil {
		return err
	}
	present, err := t.store.Get(ctx, "", t.name, storage.GetOptions{})
	if err != nil {
		return err
	}
	if meta.FindStatusCondition(present.Object().(*networkingv1.ServiceCIDR).Status.Conditions, networkingv1.ServiceCIDRConditionReady) != nil {
		return nil
	}
	t.sub = t.resource.Subresource("status")
	options := writeOptions{manager: bootstrapManager}
	_, err = s.change(ctx, t, change{options: options, next: func(_ context.Context, live runtime.Object) (runtime.Object, error) {
		next := live.DeepCopyObject().(*networkingv1.ServiceCIDR)
		meta.SetStatusCondition(&next.Status.Conditions, metav1.Condition{
			Type: networkingv1.ServiceCIDRConditionReady, Status: metav1.ConditionTrue, Message: "Kubernetes default Service CIDR is ready",
		})
		return s.track(t, live, next, options.manager)
	}})
	return err
}

var (
	serviceResource     = corev1.SchemeGroupVersion.WithResource("services")
	serviceCIDRResource = networkingv1.SchemeGroupVersion.WithResource("servicecidrs")
)

// serviceRanges are the CIDRs of ServiceCIDRs that are ready and stay, from the cache: a range that is a moment old is as
// good, since addresses are claimed in the store, and one that goes away waits for its last address (controllers).
func (s *Server) serviceRanges(ctx context.Context) []netip.Prefix {
	found, err := s.storeOf(s.table.Lookup(serviceCIDRResource)).List(ctx, storage.ListOptions{ResourceVersion: "0"})
	if err != nil {
		s.log.Warn("service ranges cannot be read", "err", err)
		return nil
	}
	var out []netip.Prefix
	for _, item := range found.Items {
		cidr := item.Object().(*networkingv1.ServiceCIDR)
		if cidr.DeletionTimestamp != nil || !meta.IsStatusConditionTrue(cidr.Status.Conditions, networkingv1.ServiceCIDRConditionReady) {
			continue
		}
		for _, text := range cidr.Spec.CIDRs {
			if prefix, err := netip.ParsePrefix(text); err == nil {
				out = append(out, prefix.Masked())
			}
		}
	}
	return out
}
