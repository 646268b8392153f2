package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kontiki/internal/bench/load"
)

// listedPods is how many pods are listed. Nobody schedules them.
const listedPods = 5000

func benchAPI(ctx context.Context, client kubernetes.Interface, each time.Duration) error {
	maps := client.CoreV1().ConfigMaps("default")
	data := map[string]string{"data": strings.Repeat("x", 1024)}
	for _, clients := range []int{1, 64} {
		m, err := load.Run(ctx, clients, each, func(ctx context.Context, _ int, n int64) error {
			name := fmt.Sprintf("bench-%d-%d", clients, n)
			_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}, metav1.CreateOptions{})
			return err
		})
		if err != nil {
			return err
		}
		reportLoad(m, fmt.Sprintf("API: create ConfigMap of 1 KiB, %d clients", clients))
	}
	if err := createPods(ctx, client); err != nil {
		return err
	}
	pods := client.CoreV1().Pods("bench")
	m, err := load.Run(ctx, 1, each, func(ctx context.Context, _ int, _ int64) error {
		list, err := pods.List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) != listedPods {
			err = fmt.Errorf("%d pods in the list", len(list.Items))
		}
		return err
	})
	if err != nil {
		return err
	}
	reportLoad(m, fmt.Sprintf("API: list %d pods (protobuf)", listedPods))
	return nil
}

func createPods(ctx context.Context, client kubernetes.Interface) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bench"}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return err
	}
	pod := corev1.Pod{Spec: corev1.PodSpec{
		SchedulerName: "nobody",
		Containers:    []corev1.Container{{Name: "hello", Image: "kontiki.local/hello:latest"}},
	}}
	began := time.Now()
	const clients = 16
	var group errgroup.Group
	for c := range clients {
		group.Go(func() error {
			for i := c; i < listedPods; i += clients {
				mine := pod
				mine.Name = fmt.Sprintf("bench-%d", i)
				if _, err := client.CoreV1().Pods("bench").Create(ctx, &mine, metav1.CreateOptions{}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	report(fmt.Sprintf("API: create Pod, %d clients", clients), "%7.0f/s", listedPods/time.Since(began).Seconds())
	return nil
}

func schedulable(ctx context.Context, client kubernetes.Interface) bool {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false
	}
	for _, n := range nodes.Items {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				return true
			}
		}
	}
	return false
}

func runningPods(ctx context.Context, client kubernetes.Interface) int {
	pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=hello"})
	if err != nil {
		return 0
	}
	running := 0
	for _, p := range pods.Items {
		if p.Status.Phase == corev1.PodRunning {
			running++
		}
	}
	return running
}
