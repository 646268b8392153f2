package nodeagent_test

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// failFirst fails the first PATCH of a Node.
type failFirst struct {
	http.RoundTripper
	failed *atomic.Bool
}

func (f failFirst) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/nodes/n1") && f.failed.CompareAndSwap(false, true) {
		return nil, errors.New("no answer")
	}
	return f.RoundTripper.RoundTrip(r)
}

// TestRegistrationIsTriedAgain: an agent whose Node is there already, and whose first request to take it over fails, goes on to
// renew its Lease all the same.
func TestRegistrationIsTriedAgain(t *testing.T) {
	n := startNode(t)
	renewed := func() (at time.Time) {
		lease, err := n.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), "n1", metav1.GetOptions{})
		if err == nil {
			at = lease.Spec.RenewTime.Time
		}
		return at
	}
	require.Eventually(t, func() bool { return !renewed().IsZero() }, patience, 20*time.Millisecond)
	n.stop()
	before, failed := renewed(), &atomic.Bool{}
	n.rest.Wrap(func(next http.RoundTripper) http.RoundTripper { return failFirst{next, failed} })
	n.start()
	require.Eventually(t, func() bool { return renewed().After(before) }, patience, 20*time.Millisecond)
	require.True(t, failed.Load())
}
