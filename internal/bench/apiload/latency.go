package apiload

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kontiki/internal/bench/load"
)

// Latency is how long one client waits for the answer to a create, at the median.
type Latency struct{ ConfigMap, Pod time.Duration }

// CreateLatency has one client create config maps and then pods, each kind for config.Each, and removes them.
func CreateLatency(ctx context.Context, config Config) (l Latency, err error) {
	r, err := newRunner(ctx, config)
	if err != nil {
		return l, err
	}
	defer r.remove(ctx)
	maps, err := load.Run(ctx, 1, r.Each, func(ctx context.Context, c int, n int64) error {
		_, err := r.client(c).CoreV1().ConfigMaps(namespace).Create(ctx, configMap(fmt.Sprintf("l-%d", n)), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return l, err
	}
	pods, err := load.Run(ctx, 1, r.Each, func(ctx context.Context, c int, n int64) error {
		_, err := r.client(c).CoreV1().Pods(namespace).Create(ctx, pod(fmt.Sprintf("l-%d", n)), metav1.CreateOptions{})
		return err
	})
	return Latency{maps.P50, pods.P50}, err
}
