package compat

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"kontiki/internal/freeport"
	"kontiki/internal/pki"
	"kontiki/raftstore"
	"kontiki/raftstore/etcdapi"
)

// startKubeAPIServer runs Kubernetes' own API server on Kontiki's etcd API, with mutual TLS, and returns a client of
// it. The test is skipped where there is no such program.
func startKubeAPIServer(t *testing.T) (*raftstore.Member, *kubernetes.Clientset) {
	home, _ := os.UserHomeDir()
	program := filepath.Join(home, ".cache", "kontiki-conformance", "kube-apiserver")
	if given := os.Getenv("KONTIKI_KUBE_APISERVER"); given != "" {
		program = given
	}
	if _, err := os.Stat(program); err != nil {
		t.Skipf("needs a kube-apiserver (KONTIKI_KUBE_APISERVER): %v", err)
	}
	dir := t.TempDir()
	certs, err := pki.Open(filepath.Join(dir, "pki"), pki.Options{NodeName: "test", NodeIPs: []net.IP{net.IPv4(127, 0, 0, 1)}})
	require.NoError(t, err)
	member, endpoint := serveKontiki(t, raftstore.Config{Dir: filepath.Join(dir, "store")}, etcdapi.Config{TLS: certs.StoreServing()})
	port, err := freeport.Take()
	require.NoError(t, err)
	log, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	key := writeKey(t, filepath.Join(dir, "sa.key"))
	tokens := filepath.Join(dir, "tokens.csv")
	require.NoError(t, os.WriteFile(tokens, []byte("secret,admin,1,system:masters\n"), 0o600))
	cmd := exec.Command(program, "--etcd-servers=https://"+endpoint,
		"--etcd-cafile="+filepath.Join(certs.Dir(), "store-ca.crt"), "--etcd-certfile="+filepath.Join(certs.Dir(), "store-client.crt"),
		"--etcd-keyfile="+filepath.Join(certs.Dir(), "store-client.key"),
		"--bind-address=127.0.0.1", fmt.Sprint("--secure-port=", port), "--cert-dir="+filepath.Join(dir, "serving"),
		"--service-account-key-file="+key, "--service-account-signing-key-file="+key, "--service-account-issuer=https://test",
		"--token-auth-file="+tokens, "--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24")
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
		if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("kube-apiserver: %s", text[max(0, len(text)-10_000):])
		}
	})
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: fmt.Sprintf("https://127.0.0.1:%d", port), BearerToken: "secret", QPS: -1, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
		return err == nil
	}, 2*time.Minute, 200*time.Millisecond, "kube-apiserver is not ready")
	return member, client
}

func writeKey(t *testing.T, path string) string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600))
	return path
}

// TestKubeAPIServer: objects are created, read in pages, updated in competition, watched, and deleted, and at the
// end the watch has seen each change once and in order.
func TestKubeAPIServer(t *testing.T) {
	member, client := startKubeAPIServer(t)
	const objects, writers = 3000, 10
	ctx := t.Context()
	maps := client.CoreV1().ConfigMaps("many")
	_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "many"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	empty, err := maps.List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	watch, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: empty.ResourceVersion})
	require.NoError(t, err)
	defer watch.Stop()
	// Read on while there is much to do: a kube-apiserver cuts watchers that do not.
	received := make(chan apiwatch.Event, 3*objects)
	go func() {
		defer close(received)
		for e := range watch.ResultChan() {
			received <- e
		}
	}()

	each := func(f func(i int) error) time.Duration {
		start := time.Now()
		var group sync.WaitGroup
		for w := range writers {
			group.Go(func() {
				for i := w; i < objects; i += writers {
					if err := f(i); err != nil {
						t.Errorf("object %d: %v", i, err)
						return
					}
				}
			})
		}
		group.Wait()
		return time.Since(start)
	}
	name := func(i int) string { return fmt.Sprintf("m%04d", i) }
	created := each(func(i int) error {
		_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name(i)}, Data: map[string]string{"n": "0"}}, metav1.CreateOptions{})
		return err
	})
	_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name(0)}}, metav1.CreateOptions{})
	require.True(t, apierrors.IsAlreadyExists(err), "%v", err)

	start, seen := time.Now(), map[string]bool{}
	for next := (metav1.ListOptions{Limit: 500}); ; {
		page, err := maps.List(ctx, next)
		require.NoError(t, err)
		for _, m := range page.Items {
			seen[m.Name] = true
		}
		if next.Continue = page.Continue; next.Continue == "" {
			break
		}
	}
	listed := time.Since(start)
	require.Len(t, seen, objects)

	stale, err := maps.Get(ctx, name(0), metav1.GetOptions{})
	require.NoError(t, err)
	updated := each(func(i int) error {
		m, err := maps.Get(ctx, name(i), metav1.GetOptions{})
		if err != nil {
			return err
		}
		m.Data["n"] = "1"
		_, err = maps.Update(ctx, m, metav1.UpdateOptions{})
		return err
	})
	_, err = maps.Update(ctx, stale, metav1.UpdateOptions{})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	deleted := each(func(i int) error { return maps.Delete(ctx, name(i), metav1.DeleteOptions{}) })

	last, events := map[string]string{}, 0
	for events < 3*objects {
		select {
		case e, ok := <-received:
			require.True(t, ok, "the watch ended after %d events", events)
			m, ok := e.Object.(*corev1.ConfigMap)
			require.True(t, ok, "%v", e)
			require.Equal(t, map[string]string{"": "ADDED", "ADDED": "MODIFIED", "MODIFIED": "DELETED"}[last[m.Name]], string(e.Type), m.Name)
			last[m.Name] = string(e.Type)
			events++
		case <-time.After(time.Minute):
			t.Fatalf("%d events, and then none for a minute", events)
		}
	}
	status, err := member.Status()
	require.NoError(t, err)
	t.Logf("%d objects: created in %v, listed in pages of 500 in %v, read and updated in %v, deleted in %v; %d events; revision %d",
		objects, created, listed, updated, deleted, events, status.Store.Revision)
}
