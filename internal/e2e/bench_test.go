package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// benchClient is a client without a rate limit, as a load generator needs it.
func benchClient(b *testing.B, n *node, contentType string) *kubernetes.Clientset {
	b.Helper()
	config := rest.CopyConfig(n.restConfig(b))
	config.QPS = -1
	config.ContentType = contentType
	return kubernetes.NewForConfigOrDie(config)
}

// BenchmarkCreate measures API creates of a 1 KiB ConfigMap, fsync on, with 1 and 64 clients.
func BenchmarkCreate(b *testing.B) {
	n := shared(b)
	maps := benchClient(b, n, "application/vnd.kubernetes.protobuf").CoreV1().ConfigMaps("default")
	for _, clients := range []int{1, 64} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			var next atomic.Int64
			var group sync.WaitGroup
			value := strings.Repeat("x", 1024)
			prefix := fmt.Sprintf("b%d-%d-", clients, time.Now().UnixNano())
			b.ResetTimer()
			for range clients {
				group.Go(func() {
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: prefix + strconv.FormatInt(i, 10)}, Data: map[string]string{"k": value}}
						if _, err := maps.Create(context.Background(), cm, metav1.CreateOptions{}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			group.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "creates/s")
		})
	}
	require.NoError(b, maps.DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{}))
}

// BenchmarkListPods lists 5,000 pods that no node runs, as JSON and as protobuf.
func BenchmarkListPods(b *testing.B) {
	n := shared(b)
	const pods = 5000
	client := benchClient(b, n, "application/vnd.kubernetes.protobuf")
	ctx := context.Background()
	ns := namespace(b, n)
	var group sync.WaitGroup
	for worker := range 32 {
		group.Go(func() {
			for i := worker; i < pods; i += 32 {
				pod := &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p-%04d", i), Labels: map[string]string{"app": "bench"}},
					Spec: corev1.PodSpec{SchedulerName: "nobody", Containers: []corev1.Container{{
						Name: "c", Image: "kontiki.local/hello:latest", Env: []corev1.EnvVar{{Name: "A", Value: "B"}},
					}}},
				}
				if _, err := client.CoreV1().Pods(ns).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	for _, media := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		b.Run(filepath.Base(media), func(b *testing.B) {
			client := benchClient(b, n, media)
			for range b.N {
				list, err := client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
				require.NoError(b, err)
				require.Len(b, list.Items, pods)
			}
		})
	}
	grace := int64(0)
	require.NoError(b, client.CoreV1().Pods(ns).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &grace}, metav1.ListOptions{}))
}

// BenchmarkApplyToRunning measures `kubectl apply` of 3 replicas until all three are ready, image present.
func BenchmarkApplyToRunning(b *testing.B) {
	n := shared(b)
	ns := namespace(b, n)
	k := embeddedKubectl()
	client := benchClient(b, n, "application/vnd.kubernetes.protobuf")
	for i := range b.N {
		name := fmt.Sprintf("run-%d", i)
		r := k.run(n, deployment(name, 3), "-n", ns, "apply", "-f", "-")
		require.NoError(b, r.err, r.stderr)
		eventually(b, time.Minute, func() string {
			list, err := client.CoreV1().Pods(ns).List(context.Background(), metav1.ListOptions{LabelSelector: "app=" + name})
			require.NoError(b, err)
			running := 0
			for _, pod := range list.Items {
				if pod.Status.Phase == corev1.PodRunning {
					running++
				}
			}
			if running < 3 {
				return fmt.Sprintf("%d of 3 pods run", running)
			}
			return ""
		})
		b.StopTimer()
		require.NoError(b, k.run(n, "", "-n", ns, "delete", "deployment", name, "--cascade=foreground").err)
		b.StartTimer()
	}
}

// BenchmarkRestart measures start to /readyz on the data directory that the other benchmarks left.
// It also reports what the idle process holds in memory.
func BenchmarkRestart(b *testing.B) {
	n := shared(b)
	client := n.http(b, true)
	for range b.N {
		b.StopTimer()
		n.kill9()
		b.StartTimer()
		require.NoError(b, n.start())
		for {
			resp, err := client.Get(n.url("/readyz"))
			if err == nil {
				resp.Body.Close()
				if resp.StatusCode == 200 {
					break
				}
			}
			time.Sleep(2 * time.Millisecond)
		}
	}
	b.StopTimer()
	require.NoError(b, n.waitReady(time.Minute))
	time.Sleep(15 * time.Second) // let start-up garbage go: what is measured is the idle process
	b.ReportMetric(residentMiB(b, n.cmd.Process.Pid), "MiB-idle")
}

func residentMiB(b *testing.B, pid int) float64 {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(b, err)
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			require.NoError(b, err)
			return kib / 1024
		}
	}
	b.Fatal("no VmRSS line")
	return 0
}
