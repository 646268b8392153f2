package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// crashes is how often TestKillNine kills the server.
const crashes = 20

// acknowledged remembers every write that the server said yes to.
type acknowledged struct {
	mu   sync.Mutex // guards data
	data map[string]string
}

func (a *acknowledged) add(name, value string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.data[name] = value
}

// TestKillNine kills the server with SIGKILL at random moments while objects are written. What
// was acknowledged must be there afterwards, containers must keep their PIDs, and the controllers
// must not have made a pod twice.
func TestKillNine(t *testing.T) {
	needCluster(t)
	stopShared() // two nodes would share the bridge of this network namespace
	sharedNode, sharedOnce = nil, sync.Once{}
	n := newNode(t.TempDir(), 6443)
	require.NoError(t, n.start())
	t.Cleanup(func() {
		if t.Failed() {
			_ = n.start()
			_ = n.waitReady(time.Minute)
			t.Log(n.tryKubectl("get", "pods", "-o", "yaml"))
			t.Log(n.tryKubectl("get", "events"))
			t.Log(n.logTail())
		}
		n.stop()
	})
	require.NoError(t, n.waitReady(60*time.Second), n.logTail())
	k := embeddedKubectl()
	k.okInput(t, n, deployment("steady", 3), "apply", "-f", "-")
	k.ok(t, n, "rollout", "status", "deployment/steady", "--timeout=60s")
	before, pods := containerPIDs(), podUIDs(t, n)
	require.Len(t, before, 3)

	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	acked := &acknowledged{data: map[string]string{}}
	ctx, cancel := context.WithCancel(context.Background())
	var writers sync.WaitGroup
	for id := range 4 {
		writers.Go(func() { write(ctx, t, n, id, acked) })
	}
	for crash := range crashes {
		time.Sleep(time.Duration(50+random.IntN(700)) * time.Millisecond)
		n.kill9()
		require.Equal(t, before, containerPIDs(), "containers kept their processes, crash %d", crash)
		require.NoError(t, n.start(), "crash %d", crash)
		require.NoError(t, n.waitServing(time.Minute), "crash %d: %s", crash, n.logTail())
	}
	cancel()
	writers.Wait()
	require.NoError(t, n.waitReady(60*time.Second), n.logTail())

	client := kubernetes.NewForConfigOrDie(n.restConfig(t))
	list, err := client.CoreV1().ConfigMaps("default").List(context.Background(), metav1.ListOptions{LabelSelector: "crash=yes"})
	require.NoError(t, err)
	found := map[string]string{}
	for _, cm := range list.Items {
		found[cm.Name] = cm.Data["v"]
	}
	for name, value := range acked.data {
		require.Contains(t, found, name, "an acknowledged create is gone")
		require.GreaterOrEqual(t, found[name], value, "an acknowledged update of %s is gone", name)
	}
	t.Logf("%d acknowledged objects survived %d crashes", len(acked.data), crashes)
	require.Equal(t, before, containerPIDs(), "containers kept their processes")
	require.Equal(t, pods, podUIDs(t, n), "no pod was lost or made twice")
	k.ok(t, n, "delete", "deployment", "steady", "--cascade=foreground", "--timeout=60s")
}

// waitServing waits for /readyz alone: the node need not be Ready between two crashes.
func (n *node) waitServing(limit time.Duration) error {
	deadline := time.Now().Add(limit)
	for {
		out, err := n.tryKubectl("get", "--raw", "/readyz")
		if err == nil && strings.TrimSpace(out) == "ok" {
			return nil
		}
		if err := n.pause(deadline); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	}
}

// write creates ConfigMaps and updates each once, and notes what was acknowledged. Errors are
// expected: the server is being killed.
func write(ctx context.Context, t *testing.T, n *node, id int, acked *acknowledged) {
	config := n.restConfig(t)
	config.QPS = -1 // as fast as the server answers
	client := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default")
	for i := 0; ctx.Err() == nil; i++ {
		name := fmt.Sprintf("w%d-%06d", id, i)
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"crash": "yes"}}, Data: map[string]string{"v": "1"}}
		created, err := client.Create(ctx, cm, metav1.CreateOptions{})
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		acked.add(name, "1")
		created.Data["v"] = "2"
		if _, err := client.Update(ctx, created, metav1.UpdateOptions{}); err == nil {
			acked.add(name, "2")
		}
	}
}

// podUIDs maps the uid of each pod of the test to its name.
func podUIDs(t *testing.T, n *node) map[string]string {
	t.Helper()
	out := embeddedKubectl().ok(t, n, "get", "pods", "-l", "app=steady", "-o",
		`jsonpath={range .items[*]}{.metadata.uid}={.metadata.name}{"\n"}{end}`)
	uids := map[string]string{}
	for _, line := range strings.Fields(out) {
		uid, name, _ := strings.Cut(line, "=")
		uids[uid] = name
	}
	return uids
}
