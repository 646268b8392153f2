package admission

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func TestDenyExternalIPs(t *testing.T) {
	service := func(ips ...string) *corev1.Service {
		return &corev1.Service{ObjectMeta: inNS("s"), Spec: corev1.ServiceSpec{ExternalIPs: ips}}
	}
	p := denyExternalIPs{}
	require.NoError(t, p.Validate(t.Context(), write(service(), nil, "")))
	forbidden(t, p.Validate(t.Context(), write(service("1.2.3.4"), nil, "")), "Use of external IPs is denied by admission control")
	require.NoError(t, p.Validate(t.Context(), write(service("1.2.3.4"), service("1.2.3.4", "5.6.7.8"), "")))
	forbidden(t, p.Validate(t.Context(), write(service("1.2.3.4"), service("5.6.7.8"), "")), "denied")
}
