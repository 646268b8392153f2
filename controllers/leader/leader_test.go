package leader

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"kontiki/internal/pki"
	"kontiki/internal/testcluster"
)

// One of two works; when it stops the other takes over, long before the Lease would be over.
func TestOneWorksAtATime(t *testing.T) {
	cluster := testcluster.Start(t)
	working := make(chan string, 2)
	candidate := func(name string) (stop func()) {
		return cluster.Go(name, func(ctx context.Context) error {
			config := Config{REST: cluster.REST(pki.ControllerManager), Name: "test", Identity: name, Duration: time.Hour, Log: cluster.Log}
			return Run(ctx, config, func(ctx context.Context, _ *rest.Config) error {
				working <- name
				<-ctx.Done()
				return nil
			})
		})
	}
	next := func() string {
		select {
		case name := <-working:
			return name
		case <-time.After(time.Minute):
			require.Fail(t, "nobody works")
			return ""
		}
	}
	stopFirst := candidate("first")
	require.Equal(t, "first", next())
	candidate("second")
	stopFirst()
	require.Equal(t, "second", next())
}

// Only who holds the Lease can write.
func TestOnlyTheHolderWrites(t *testing.T) {
	cluster := testcluster.Start(t)
	create := func(ctx context.Context, config *rest.Config, name string) error {
		_, err := kubernetes.NewForConfigOrDie(config).CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		return err
	}
	written := make(chan error, 1)
	var kept *rest.Config
	stop := cluster.Go("holder", func(ctx context.Context) error {
		config := Config{REST: cluster.REST(pki.Admin), Name: "test", Identity: "holder", Log: cluster.Log}
		return Run(ctx, config, func(ctx context.Context, rest *rest.Config) error {
			kept = rest
			written <- create(ctx, rest, "within")
			<-ctx.Done()
			return nil
		})
	})
	require.NoError(t, <-written)
	stop()
	require.ErrorIs(t, create(t.Context(), kept, "after"), ErrNotLeader)
	_, err := cluster.Admin().CoreV1().Namespaces().Get(t.Context(), "after", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	_, err = kubernetes.NewForConfigOrDie(kept).CoreV1().Namespaces().Get(t.Context(), "within", metav1.GetOptions{})
	require.NoError(t, err, "it may read")
}
