package apiload

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// kilobyte is the data of a ConfigMap.
var kilobyte = strings.Repeat("x", 1024)

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"data": kilobyte}}
}

// pod is one that nobody schedules.
func pod(name string) *corev1.Pod {
	no := false
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "bench"}}, Spec: corev1.PodSpec{
		SchedulerName: "nobody", AutomountServiceAccountToken: &no,
		Containers: []corev1.Container{{Name: "hello", Image: "kontiki.local/hello:latest"}},
	}}
}

func (r *runner) creates(ctx context.Context) error {
	defer r.remove(ctx)
	aims := map[int]string{1: "p50 1.5 ms (etcd's: 4.6–5.4)", 16: "", 64: "2,500–2,900/s, p99 60 ms (625–730, 200–260)"}
	for _, clients := range []int{1, 16, 64} {
		err := r.run(ctx, "create ConfigMap of 1 KiB", aims[clients], clients, func(ctx context.Context, c int, n int64) error {
			_, err := r.client(c).CoreV1().ConfigMaps(namespace).Create(ctx, configMap(fmt.Sprintf("c-%d-%d", clients, n)), metav1.CreateOptions{})
			return err
		})
		if err != nil {
			return err
		}
		err = r.run(ctx, "create Pod", aims[clients], clients, func(ctx context.Context, c int, n int64) error {
			_, err := r.client(c).CoreV1().Pods(namespace).Create(ctx, pod(fmt.Sprintf("p-%d-%d", clients, n)), metav1.CreateOptions{})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// remove deletes the pods and config maps of a load.
func (r *runner) remove(ctx context.Context) {
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	_ = r.client(0).CoreV1().ConfigMaps(namespace).DeleteCollection(ctx, now, metav1.ListOptions{})
	_ = r.client(0).CoreV1().Pods(namespace).DeleteCollection(ctx, now, metav1.ListOptions{})
}

// updates has each client replace an object of its own, on condition of the resourceVersion that it last got.
func (r *runner) updates(ctx context.Context) error {
	defer r.remove(ctx)
	for _, clients := range []int{1, 64} {
		mine := make([]*corev1.ConfigMap, clients)
		for i := range mine {
			var err error
			if mine[i], err = r.client(i).CoreV1().ConfigMaps(namespace).Create(ctx, configMap(fmt.Sprintf("u-%d-%d", clients, i)), metav1.CreateOptions{}); err != nil {
				return err
			}
		}
		aim := ""
		if clients == 64 {
			aim = "2,400–2,520/s (600–630)"
		}
		err := r.run(ctx, "update with resourceVersion", aim, clients, func(ctx context.Context, c int, n int64) error {
			next := mine[c].DeepCopy()
			next.Data["n"] = strconv.FormatInt(n, 10)
			updated, err := r.client(c).CoreV1().ConfigMaps(namespace).Update(ctx, next, metav1.UpdateOptions{})
			mine[c] = updated
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// increments has all clients count in one object: get, add one, update, and again after a conflict.
func (r *runner) increments(ctx context.Context) error {
	defer r.remove(ctx)
	if _, err := r.client(0).CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "counter"}, Data: map[string]string{"n": "0"}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	var done atomic.Int64
	err := r.run(ctx, "contended increments", "295/s (59), none lost", 16, func(ctx context.Context, c int, _ int64) error {
		for {
			err := increment(ctx, r.client(c))
			if err == nil {
				done.Add(1)
			}
			if !apierrors.IsConflict(err) {
				return err
			}
		}
	})
	if err != nil {
		return err
	}
	counter, err := r.client(0).CoreV1().ConfigMaps(namespace).Get(ctx, "counter", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if counter.Data["n"] != strconv.FormatInt(done.Load(), 10) {
		return fmt.Errorf("%d increments succeeded, and the counter is at %s", done.Load(), counter.Data["n"])
	}
	return nil
}

func increment(ctx context.Context, client kubernetes.Interface) error {
	maps := client.CoreV1().ConfigMaps(namespace)
	counter, err := maps.Get(ctx, "counter", metav1.GetOptions{})
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(counter.Data["n"])
	if err != nil {
		return err
	}
	counter.Data["n"] = strconv.Itoa(n + 1)
	_, err = maps.Update(ctx, counter, metav1.UpdateOptions{})
	return err
}

func (r *runner) gets(ctx context.Context) error {
	defer r.remove(ctx)
	if _, err := r.client(0).CoreV1().ConfigMaps(namespace).Create(ctx, configMap("g"), metav1.CreateOptions{}); err != nil {
		return err
	}
	aims := map[int]string{1: "1,650/s (550)", 64: "8,000/s (1,330)"}
	for _, clients := range []int{1, 64} {
		err := r.run(ctx, "get, consistent", aims[clients], clients, func(ctx context.Context, c int, _ int64) error {
			_, err := r.client(c).CoreV1().ConfigMaps(namespace).Get(ctx, "g", metav1.GetOptions{})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// listedPods is how many pods are listed.
const listedPods = 5000

func (r *runner) lists(ctx context.Context) error {
	defer r.remove(ctx)
	var group errgroup.Group
	const clients = 16
	for c := range clients {
		group.Go(func() error {
			for i := c; i < listedPods; i += clients {
				if _, err := r.client(c).CoreV1().Pods(namespace).Create(ctx, pod(fmt.Sprintf("l-%d", i)), metav1.CreateOptions{}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, form := range []struct {
		name, aim string
		client    kubernetes.Interface
	}{{"protobuf", "21 ms (104)", r.client(0)}, {"JSON", "37 ms (187)", r.json}} {
		err := r.run(ctx, fmt.Sprintf("list of %d pods, %s", listedPods, form.name), form.aim, 1, func(ctx context.Context, _ int, _ int64) error {
			// The bytes as they come: what decoding costs is the client's affair, and the same for all servers.
			data, err := form.client.CoreV1().RESTClient().Get().Namespace(namespace).Resource("pods").Do(ctx).Raw()
			if err == nil && len(data) < 100*listedPods {
				err = fmt.Errorf("%d bytes are too few", len(data))
			}
			return err
		})
		if err != nil {
			return err
		}
		err = r.run(ctx, fmt.Sprintf("the same, decoded, %s", form.name), form.aim, 1, func(ctx context.Context, _ int, _ int64) error {
			list, err := form.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
			if err == nil && len(list.Items) != listedPods {
				err = fmt.Errorf("%d pods in the list", len(list.Items))
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	_, err := r.client(0).CoreV1().Pods(namespace).Patch(ctx, "l-0", types.MergePatchType, []byte(`{"metadata":{"labels":{"x":"y"}}}`), metav1.PatchOptions{})
	return err
}
