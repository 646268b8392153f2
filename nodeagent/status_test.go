package nodeagent

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"
)

// TestForbiddenStatus: the API server forbids a node what is about no pod of its. That may be since the pod is gone, which its
// watch tells a moment later: nobody need hear of it. It may be that a server does not know yet that the pod is here: then it
// is tried again. When it lasts it is a fault, and told.
func TestForbiddenStatus(t *testing.T) {
	for _, c := range []struct {
		name    string
		allowed time.Duration // after which the server lets it
		gone    time.Duration // after which the watch says that the pod is gone
		told    bool
		written bool
	}{
		{"gone", time.Hour, 300 * time.Millisecond, false, false},
		{"gone before", time.Hour, 0, false, false},
		{"not known yet", 500 * time.Millisecond, time.Hour, false, true},
		{"not allowed", 20 * time.Second, time.Hour, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u", ResourceVersion: "1"}}
				client := fake.NewClientset(pod)
				began := time.Now()
				client.PrependReactor("patch", "pods", func(kubetesting.Action) (bool, runtime.Object, error) {
					if time.Since(began) < c.allowed {
						return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "p", nil)
					}
					return false, nil, nil
				})
				log := &bytes.Buffer{}
				w := newWorker(&Agent{client: client, log: slog.New(slog.NewTextHandler(log, nil))}, "u")
				w.pod, w.status.want = pod, &corev1.PodStatus{Phase: corev1.PodRunning}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				timer := time.AfterFunc(c.gone, w.objectGone)
				defer timer.Stop()
				if c.gone == 0 {
					synctest.Wait()
				}
				w.writeStatus(ctx)
				require.NoError(t, ctx.Err(), "it goes on and on")
				require.Equal(t, c.told, log.Len() > 0, log)
				require.Equal(t, c.written, w.status.written != nil)
				require.Nil(t, w.status.want)
			})
		})
	}
}
