package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func (s *testServer) client() kubernetes.Interface {
	s.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(s.dir, adminKubeconfig))
	require.NoError(s.t, err)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	require.NoError(s.t, err)
	return client
}

// TestAP39_NoAddressTwiceAcrossLeaders: 400 Services by eight clients over all servers, while the leader is killed five
// times; then the store goes back to a snapshot, and there are 100 more.
func TestAP39_NoAddressTwiceAcrossLeaders(t *testing.T) {
	if testing.Short() {
		t.Skip("runs three servers for most of a minute")
	}
	a, b, c := startThree(t)
	servers := []*testServer{a, b, c}
	var clients []kubernetes.Interface
	for _, s := range servers {
		clients = append(clients, s.client())
	}
	var created atomic.Int64
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() { createServices(t, clients, w, 50, &created) })
	}
	for round := range int64(5) {
		require.Eventually(t, func() bool { return created.Load() >= 60*(round+1) }, time.Minute, 5*time.Millisecond)
		leader := leaderOf(t, servers)
		leader.kill()
		leader.start("--join", a.url()+","+b.url()+","+c.url())
		leader.ready()
	}
	writers.Wait()
	require.Equal(t, 400, len(distinct(t, clients[0])))

	snapshot := filepath.Join(t.TempDir(), "snapshot")
	a.store("snapshot", "save", snapshot)
	createServices(t, clients, 8, 20, &created) // the restore takes these back, and what they hold
	for _, s := range servers {
		s.kill()
		require.NoError(t, os.RemoveAll(filepath.Join(s.dir, "store")))
	}
	a.store("snapshot", "restore", snapshot)
	a.start()
	a.ready()
	for _, s := range servers[1:] {
		s.start("--join", a.url())
		s.ready()
	}
	require.Equal(t, 400, len(distinct(t, clients[1])))
	for w := range 5 {
		writers.Go(func() { createServices(t, clients, 10+w, 20, &created) })
	}
	writers.Wait()
	require.Equal(t, 500, len(distinct(t, clients[2])))
}

// createServices creates n Services, each with whichever server answers, and knows whether it has: a name that is there
// already is from an attempt whose answer was lost.
func createServices(t *testing.T, clients []kubernetes.Interface, writer, n int, created *atomic.Int64) {
	for i := range n {
		name := "s-" + strconv.Itoa(writer) + "-" + strconv.Itoa(i)
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80}}}}
		for attempt := 0; ; attempt++ {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			_, err := clients[(writer+i+attempt)%len(clients)].CoreV1().Services("default").Create(ctx, service, metav1.CreateOptions{})
			cancel()
			if err == nil || apierrors.IsAlreadyExists(err) {
				break
			}
			if attempt == 500 || t.Context().Err() != nil {
				t.Error(name, err)
				return
			}
			select {
			case <-t.Context().Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
		created.Add(1)
	}
}

func leaderOf(t *testing.T, servers []*testServer) *testServer {
	t.Helper()
	var leader *testServer
	require.Eventually(t, func() bool {
		for _, s := range servers {
			if m, ok := s.members()[s.name]; ok && m.Status != nil && m.Status.Role == "Leader" {
				leader = s
			}
		}
		return leader != nil
	}, 30*time.Second, 50*time.Millisecond)
	return leader
}

// distinct returns the Services that writers have made, having checked that no two have an address or a port in common.
func distinct(t *testing.T, client kubernetes.Interface) map[string]bool {
	t.Helper()
	list, err := client.CoreV1().Services("default").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	holders, names := map[string]string{}, map[string]bool{}
	for _, s := range list.Items {
		held := []string{s.Spec.ClusterIP}
		if s.Name != "kubernetes" {
			names[s.Name] = true
			held = append(held, fmt.Sprint("port ", s.Spec.Ports[0].NodePort))
		}
		for _, h := range held {
			require.Empty(t, holders[h], "%s is of %s and of %s", h, holders[h], s.Name)
			holders[h] = s.Name
		}
	}
	return names
}
