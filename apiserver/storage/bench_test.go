package storage_test

import (
	"context"
	"encoding/json"
	"fmt"
	goruntime "runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kontiki/apiserver/storage"
	"kontiki/watch"
)

// benchPod is of the size that pods of a Deployment have: about 1 KiB as protobuf.
func benchPod(i int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "t", Name: fmt.Sprintf("web-6b7f675bbf-%05d", i), UID: "6f5b7c2e-0d0c-4f0a-9e65-9f0b5b6a7c11",
			Labels:          map[string]string{"app": "web", "pod-template-hash": "6b7f675bbf"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-6b7f675bbf", UID: "0b5b6a7c-0d0c-4f0a-9e65-9f0b5b6a7c11"}},
			ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "kontiki", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{` + strings.Repeat(`"f:x":{},`, 30) + `"f:y":{}}}`)}}},
		},
		Spec: corev1.PodSpec{
			NodeName: fmt.Sprintf("node-%d", i%100), RestartPolicy: corev1.RestartPolicyAlways,
			Containers: []corev1.Container{{
				Name: "web", Image: "kontiki.local/hello:latest", ImagePullPolicy: corev1.PullIfNotPresent,
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi")}},
				Env:       []corev1.EnvVar{{Name: "POD_NAME", Value: "x"}, {Name: "POD_IP", Value: "10.244.0.1"}},
			}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.244.0.1", Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

func createPods(b *testing.B, s *storage.Store, n int) {
	var clients sync.WaitGroup
	for c := range 32 {
		clients.Go(func() {
			for i := c; i < n; i += 32 {
				if _, err := s.Create(b.Context(), benchPod(i), storage.CreateOptions{}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	clients.Wait()
}

func encodeJSON(obj runtime.Object) ([]byte, error) { return json.Marshal(obj) }

// BenchmarkList5000 is a consistent list of 5,000 pods with their JSON encodings, which after the
// first time are at hand; /cold is that first time.
func BenchmarkList5000(b *testing.B) {
	kv := openMember(b)
	e := newEnv(b, kv, storage.Config{})
	createPods(b, e.rows("", "v1", "pods"), 5000)
	list := func(b *testing.B, s *storage.Store) {
		list, err := s.List(b.Context(), storage.ListOptions{})
		require.NoError(b, err)
		require.Len(b, list.Items, 5000)
		for _, o := range list.Items {
			_, err := o.Encoded("json", encodeJSON)
			require.NoError(b, err)
		}
	}
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			list(b, newEnv(b, kv, storage.Config{}).rows("", "v1", "pods"))
		}
	})
	b.Run("warm", func(b *testing.B) {
		list(b, e.rows("", "v1", "pods"))
		for b.Loop() {
			list(b, e.rows("", "v1", "pods"))
		}
		b.ReportMetric(float64(heapBytes())/(1<<20), "MiB-heap")
	})
}

func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// BenchmarkGet is a consistent read: one question to the store, then the cache.
func BenchmarkGet(b *testing.B) {
	e := newEnv(b, openMember(b), storage.Config{})
	s := e.rows("", "v1", "pods")
	mustCreate(b, s, benchPod(1))
	for b.Loop() {
		_, err := s.Get(b.Context(), "t", benchPod(1).Name, storage.GetOptions{})
		require.NoError(b, err)
	}
}

// BenchmarkCreate is one client's create, fsync included.
func BenchmarkCreate(b *testing.B) {
	e := newEnv(b, openMember(b), storage.Config{})
	s := e.rows("", "v1", "pods")
	for i := 0; b.Loop(); i++ {
		mustCreate(b, s, benchPod(i))
	}
}

// BenchmarkFanOut100 updates a pod, from 16 clients, with 100 watchers that encode every event; one
// operation is one event for one watcher.
func BenchmarkFanOut100(b *testing.B) {
	e := newEnv(b, openMember(b), storage.Config{})
	s := e.rows("", "v1", "pods")
	createPods(b, s, 16)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var seen atomic.Int64
	var watchers, clients sync.WaitGroup
	no := false
	for range 100 {
		w, err := s.Watch(ctx, storage.WatchOptions{SendInitialEvents: &no})
		require.NoError(b, err)
		watchers.Go(func() {
			defer w.Stop()
			drainEncoding(ctx, w, &seen)
		})
	}
	writes := b.N/100 + 1
	b.ResetTimer()
	for c := range 16 {
		clients.Go(func() {
			for i := c; i < writes; i += 16 {
				_, err := s.Update(ctx, "t", benchPod(c).Name, storage.UpdateOptions{}, func(current *watch.Object) (runtime.Object, error) {
					next := current.Object().DeepCopyObject().(*corev1.Pod)
					next.Status.Message = fmt.Sprint(i)
					return next, nil
				})
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	clients.Wait()
	for seen.Load() < int64(writes)*100 && ctx.Err() == nil {
		goruntime.Gosched()
	}
	b.StopTimer()
	cancel()
	watchers.Wait()
}

func drainEncoding(ctx context.Context, w *watch.Watcher, seen *atomic.Int64) {
	for {
		events, err := w.Next(ctx)
		if err != nil {
			return
		}
		for _, event := range events {
			if _, err := event.Object.Encoded("json", encodeJSON); err != nil {
				return
			}
			seen.Add(1)
		}
	}
}
