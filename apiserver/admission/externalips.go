package admission

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// denyExternalIPs keeps services from taking addresses for themselves that are somebody else's. Off unless it is enabled.
type denyExternalIPs struct{}

var services = corev1.SchemeGroupVersion.WithResource("services")

// Validate implements Validator. An update may keep the addresses that are there, and give some up.
func (denyExternalIPs) Validate(_ context.Context, r *Request) error {
	service, ok := r.Object.(*corev1.Service)
	if !ok || !r.writes(services, true) {
		return nil
	}
	old, _ := r.Old.(*corev1.Service)
	for _, ip := range service.Spec.ExternalIPs {
		if old == nil || !slices.Contains(old.Spec.ExternalIPs, ip) {
			return refused(r, "Use of external IPs is denied by admission control")
		}
	}
	return nil
}
