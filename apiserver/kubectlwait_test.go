package apiserver_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAP50_KubectlWait: on what is so already, comes to be later, never comes, never was, and is deleted and made again; and a
// condition counts only once it is of the object's generation.
func TestAP50_KubectlWait(t *testing.T) {
	cluster, c := start(t)
	wait := func(args ...string) (string, int) {
		return kubectl(cluster, append([]string{"wait", "--timeout=20s"}, args...)...)
	}
	// during starts a wait, makes the change once it watches, and requires that the wait ends well.
	during := func(change func(), args ...string) {
		t.Helper()
		require.Eventually(t, func() bool { return gauge(c, longRunning) == 0 }, time.Minute, 5*time.Millisecond, "a watch of before")
		done := make(chan struct{})
		var shown string
		var code int
		go func() {
			defer close(done)
			shown, code = wait(args...)
		}()
		require.Eventually(t, func() bool { return gauge(c, longRunning) > 0 }, time.Minute, 5*time.Millisecond, "no watch")
		change()
		<-done
		require.Zero(t, code, shown)
	}
	const ready = `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`
	c.post(maps, configMap("c", "")).ok()
	c.post(maps, configMap("s1", `"labels":{"sel":"1"}`)).ok()
	c.post(maps, configMap("s2", `"labels":{"sel":"1"}`)).ok()
	c.post(pods, pod("p", "")).ok()

	shown, code := wait("--for=delete", "cm/never")
	require.Zero(t, code, shown)
	shown, code = wait("--for=jsonpath={.data.k}=v", "cm/c")
	require.Zero(t, code, shown)
	shown, code = wait("--timeout=1s", "--for=jsonpath={.data.k}=other", "cm/c")
	require.Equal(t, 1, code)
	require.Contains(t, shown, "timed out")
	shown, code = wait("--timeout=1s", "--for=jsonpath={.data.k}=v", "cm/never")
	require.Equal(t, 1, code)
	require.Contains(t, strings.ToLower(shown), "not found")

	during(func() { c.patch(maps+"/c", mergePatch, `{"data":{"k":"soon"}}`).ok() }, "--for=jsonpath={.data.k}=soon", "cm/c")
	during(func() { c.delete(maps+"/c", "").ok(); c.post(maps, configMap("c", "")).ok() }, "--for=delete", "cm/c")
	during(func() { c.delete(maps+"/c", "").ok() }, "--for=delete", "cm/c")
	during(func() { c.delete(maps+"?labelSelector=sel%3D1", "").ok() }, "--for=delete", "cm", "-l", "sel=1")
	during(func() { c.patch(pods+"/p/status", mergePatch, ready).ok() }, "--for=condition=Ready", "pod/p")

	c.post(deployments, deployment("d", `"replicas":0`)).ok()
	c.patch(deployments+"/d", mergePatch, `{"spec":{"replicas":1}}`).ok() // generation 2
	available := func(generation string) {
		c.patch(deployments+"/d/status", mergePatch, `{"status":{"observedGeneration":`+generation+`,"conditions":[{"type":"Available","status":"True"}]}}`).ok()
	}
	available("1")
	shown, code = wait("--timeout=1s", "--for=condition=Available", "deployment/d")
	require.Equal(t, 1, code, "a condition of an old generation: %s", shown)
	during(func() { available("2") }, "--for=condition=Available", "deployment/d")
}
