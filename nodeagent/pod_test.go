package nodeagent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// steer sets an annotation that steers the simulated runtime.
func steer(pod *corev1.Pod, name, value string) {
	pod.Annotations["simulated.kontiki.io/"+name] = value
}

func waiting(reason string) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool {
		return len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Waiting != nil &&
			pod.Status.ContainerStatuses[0].State.Waiting.Reason == reason
	}
}

// containers lists what the runtime has, by container name, newest attempt last.
func (n *node) containers() map[string]int {
	n.t.Helper()
	client := runtimeapi.NewRuntimeServiceClient(n.runtime.Conn())
	list, err := client.ListContainers(n.t.Context(), &runtimeapi.ListContainersRequest{})
	require.NoError(n.t, err)
	out := map[string]int{}
	for _, c := range list.Containers {
		out[c.Labels["io.kubernetes.pod.name"]]++
	}
	return out
}

// events are the reasons and messages of the pod's events.
func (n *node) events(name string) string {
	n.t.Helper()
	list, err := n.client.CoreV1().Events("default").List(n.t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
	require.NoError(n.t, err)
	var lines []string
	for _, e := range list.Items {
		lines = append(lines, e.Reason+": "+e.Message)
	}
	return strings.Join(lines, "\n")
}

func (n *node) awaitEvent(name, text string) {
	n.t.Helper()
	require.Eventually(n.t, func() bool { return strings.Contains(n.events(name), text) }, patience, 20*time.Millisecond, "event %q", text)
}

// TestCrashLoop_ND08 has one container fail at once beside one that is fine, and the agent start anew in between.
func TestCrashLoop_ND08(t *testing.T) {
	n := startNode(t)
	n.pod("p", func(pod *corev1.Pod) {
		steer(pod, "exit-after.main", "1ms")
		steer(pod, "exit-code.main", "3")
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "fine", Image: "example.com/fine:1"})
	})
	pod := n.await("p", "in CrashLoopBackOff", waiting("CrashLoopBackOff"))
	s := pod.Status.ContainerStatuses[0]
	require.Equal(t, int32(1), s.RestartCount)
	require.Equal(t, int32(3), s.LastTerminationState.Terminated.ExitCode)
	require.Equal(t, "Error", s.LastTerminationState.Terminated.Reason)
	require.Equal(t, corev1.PodRunning, pod.Status.Phase)
	require.Equal(t, int32(0), pod.Status.ContainerStatuses[1].RestartCount)
	n.awaitEvent("p", "BackOff: Back-off restarting failed container main in pod p_default")

	n.stop() // the back-off goes on where it was
	n.start()
	n.pod("later", nil)
	n.await("later", "ready", isReady) // by now the new agent would have started it too soon
	pod = n.await("p", "in CrashLoopBackOff", waiting("CrashLoopBackOff"))
	require.Equal(t, int32(1), pod.Status.ContainerStatuses[0].RestartCount)
}

func TestPodThatEnds(t *testing.T) {
	n := startNode(t)
	n.pod("good", func(pod *corev1.Pod) {
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		steer(pod, "exit-after", "1ms")
	})
	n.pod("bad", func(pod *corev1.Pod) {
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		steer(pod, "exit-after", "1ms")
		steer(pod, "oom", "true")
	})
	pod := n.await("good", "Succeeded", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded })
	require.Equal(t, "Completed", pod.Status.ContainerStatuses[0].State.Terminated.Reason)
	require.False(t, isReady(pod))
	pod = n.await("bad", "Failed", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed })
	require.Equal(t, "OOMKilled", pod.Status.ContainerStatuses[0].State.Terminated.Reason)
	require.Equal(t, map[string]int{"good": 1, "bad": 1}, n.containers(), "they stay for their logs")
	require.NoError(t, n.client.CoreV1().Pods("default").Delete(t.Context(), "good", metav1.DeleteOptions{}))
	n.awaitGone("good")
	require.Eventually(t, func() bool { return n.containers()["good"] == 0 }, patience, 20*time.Millisecond)
}

func TestInitContainersAndSidecars_ND13(t *testing.T) {
	n := startNode(t)
	always := corev1.ContainerRestartPolicyAlways
	n.pod("p", func(pod *corev1.Pod) {
		steer(pod, "exit-after.init", "10ms")
		pod.Spec.InitContainers = []corev1.Container{
			{Name: "side", Image: "example.com/side:1", RestartPolicy: &always},
			{Name: "init", Image: "example.com/init:1"},
		}
	})
	pod := n.await("p", "ready", isReady)
	require.True(t, pod.Status.InitContainerStatuses[1].Ready)
	require.Equal(t, "Completed", pod.Status.InitContainerStatuses[1].State.Terminated.Reason)

	n.stop()
	n.start()
	client := runtimeapi.NewRuntimeServiceClient(n.runtime.Conn())
	id := strings.TrimPrefix(pod.Status.ContainerStatuses[0].ContainerID, "simulated://")
	_, err := client.StopContainer(t.Context(), &runtimeapi.StopContainerRequest{ContainerId: id})
	require.NoError(t, err)
	pod = n.await("p", "restarted", func(p *corev1.Pod) bool { return p.Status.ContainerStatuses[0].RestartCount == 1 && isReady(p) })
	require.Equal(t, int32(0), pod.Status.InitContainerStatuses[0].RestartCount)
	require.Equal(t, int32(0), pod.Status.InitContainerStatuses[1].RestartCount)
}

func TestImageErrors_ND09(t *testing.T) {
	n := startNode(t)
	n.pod("pull", func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "registry.invalid/app:1" })
	n.pod("never", func(pod *corev1.Pod) { pod.Spec.Containers[0].ImagePullPolicy = corev1.PullNever })
	n.await("pull", "in ErrImagePull", waiting("ErrImagePull"))
	pod := n.await("pull", "in ImagePullBackOff", waiting("ImagePullBackOff"))
	require.Equal(t, corev1.PodPending, pod.Status.Phase)
	require.Contains(t, pod.Status.ContainerStatuses[0].State.Waiting.Message, "no such host")
	n.awaitEvent("pull", `Failed: Failed to pull image "registry.invalid/app:1"`)
	n.await("never", "in ErrImageNeverPull", waiting("ErrImageNeverPull"))
	for _, policy := range []corev1.PullPolicy{corev1.PullAlways, corev1.PullIfNotPresent} {
		name := "bad-" + strings.ToLower(string(policy))
		n.pod(name, func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Image, pod.Spec.Containers[0].ImagePullPolicy = "no image", policy
		})
		n.await(name, "in InvalidImageName", waiting("InvalidImageName"))
		n.awaitEvent(name, "Failed: Error: InvalidImageName")
	}
}

func TestConfigErrorHealsItself(t *testing.T) {
	n := startNode(t)
	n.pod("p", func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "cm"}, Key: "a"}}}}
	})
	pod := n.await("p", "in CreateContainerConfigError", waiting("CreateContainerConfigError"))
	require.Equal(t, `configmaps "cm" not found`, pod.Status.ContainerStatuses[0].State.Waiting.Message)
	_, err := n.client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cm"}, Data: map[string]string{"a": "1"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	n.await("p", "ready", isReady)
}

func TestGracePeriod(t *testing.T) {
	n := startNode(t)
	long := int64(300)
	slow := func(pod *corev1.Pod) {
		pod.Spec.TerminationGracePeriodSeconds = &long
		steer(pod, "stop-after", "1h")
	}
	n.pod("shortened", slow)
	n.pod("forced", slow)
	n.pod("clean", func(pod *corev1.Pod) {
		pod.Spec.TerminationGracePeriodSeconds = &long
		steer(pod, "stop-after", "100ms")
	})
	for _, name := range []string{"shortened", "forced", "clean"} {
		n.await(name, "ready", isReady)
	}
	pods := n.client.CoreV1().Pods("default")
	remove := func(name string, grace *int64) {
		require.NoError(t, pods.Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: grace}))
	}
	remove("clean", nil)
	n.awaitGone("clean") // long before its 300 s (ND-05)
	remove("shortened", nil)
	n.await("shortened", "terminating", func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
	one := int64(1)
	remove("shortened", &one) // a later delete shortens the wait (ND-04)
	n.awaitGone("shortened")
	remove("forced", new(int64))
	n.awaitGone("forced")
	require.Eventually(t, func() bool { return n.containers()["forced"] == 0 }, patience, 20*time.Millisecond, "the container goes soon after")
}

func TestActiveDeadline(t *testing.T) {
	n := startNode(t)
	one := int64(1)
	n.pod("p", func(pod *corev1.Pod) { pod.Spec.ActiveDeadlineSeconds = &one })
	pod := n.await("p", "Failed", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed })
	require.Equal(t, "DeadlineExceeded", pod.Status.Reason)
}

// TestContainersNobodyOwns_ND07 deletes pods while the agent is away.
func TestContainersNobodyOwns_ND07(t *testing.T) {
	n := startNode(t)
	n.pod("stays", nil)
	n.pod("goes", nil)
	before := n.await("stays", "ready", isReady)
	n.await("goes", "ready", isReady)
	n.stop()
	require.NoError(t, n.client.CoreV1().Pods("default").Delete(t.Context(), "goes", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	n.awaitGone("goes")
	n.start()
	require.Eventually(t, func() bool { return n.containers()["goes"] == 0 }, patience, 20*time.Millisecond)
	after := n.await("stays", "ready", isReady)
	require.Equal(t, before.Status.ContainerStatuses[0].ContainerID, after.Status.ContainerStatuses[0].ContainerID, "containers outlive the agent")
	require.Equal(t, before.Status.StartTime, after.Status.StartTime)
}

// TestForeignSandboxes: what another tool has in the runtime is none of the agent's business.
func TestForeignSandboxes(t *testing.T) {
	n := startNode(t)
	client := runtimeapi.NewRuntimeServiceClient(n.runtime.Conn())
	other, err := client.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "crictl", Uid: "x", Namespace: "default"}}})
	require.NoError(t, err)
	n.stop()
	n.start()
	client = runtimeapi.NewRuntimeServiceClient(n.runtime.Conn())
	n.pod("p", nil)
	n.await("p", "ready", isReady)
	status, err := client.PodSandboxStatus(t.Context(), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: other.PodSandboxId})
	require.NoError(t, err)
	require.Equal(t, runtimeapi.PodSandboxState_SANDBOX_READY, status.Status.State)
}

func TestSandboxThatDiedIsReplaced(t *testing.T) {
	n := startNode(t)
	n.pod("p", nil)
	before := n.await("p", "ready", isReady)
	client := runtimeapi.NewRuntimeServiceClient(n.runtime.Conn())
	list, err := client.ListPodSandbox(t.Context(), &runtimeapi.ListPodSandboxRequest{})
	require.NoError(t, err)
	_, err = client.StopPodSandbox(t.Context(), &runtimeapi.StopPodSandboxRequest{PodSandboxId: list.Items[0].Id})
	require.NoError(t, err)
	after := n.await("p", "running again", func(p *corev1.Pod) bool { return p.Status.ContainerStatuses[0].RestartCount == 1 && isReady(p) })
	require.Equal(t, before.UID, after.UID)
	n.awaitEvent("p", "SandboxChanged")
}

func TestConfigMapVolumeHoldsThePodBack(t *testing.T) {
	n := startNode(t)
	n.pod("p", func(pod *corev1.Pod) {
		pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "cm"}}}}}
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
	})
	n.awaitEvent("p", `FailedMount: MountVolume.SetUp failed for volume "v" : configmaps "cm" not found`)
	n.await("p", "waiting", waiting("ContainerCreating"))
	_, err := n.client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cm"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	n.await("p", "ready", isReady)
}

func TestReplacedWhileAgentIsAway(t *testing.T) {
	n := startNode(t)
	old := n.pod("p", nil)
	n.await("p", "ready", isReady)
	n.stop()
	require.NoError(t, n.client.CoreV1().Pods("default").Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	n.awaitGone("p")
	n.pod("p", nil)
	n.start()
	pod := n.await("p", "ready", isReady)
	require.NotEqual(t, old.UID, pod.UID)
	require.Eventually(t, func() bool { return n.containers()["p"] == 1 }, patience, 20*time.Millisecond)
}

func TestLogsThroughTheAPI(t *testing.T) {
	n := startNode(t)
	n.pod("p", nil)
	n.await("p", "ready", isReady)
	text, err := n.client.CoreV1().Pods("default").GetLogs("p", &corev1.PodLogOptions{}).DoRaw(t.Context())
	require.NoError(t, err)
	require.Equal(t, "simulated container main (example.com/app:1) started\n", string(text))
	_, err = n.client.CoreV1().Pods("default").GetLogs("p", &corev1.PodLogOptions{Previous: true}).Stream(t.Context())
	require.ErrorContains(t, err, `previous terminated container "main" in pod "p" not found`)

	// A follower ends when the container does.
	stream, err := n.client.CoreV1().Pods("default").GetLogs("p", &corev1.PodLogOptions{Follow: true}).Stream(t.Context())
	require.NoError(t, err)
	defer stream.Close()
	require.NoError(t, n.client.CoreV1().Pods("default").Delete(t.Context(), "p", metav1.DeleteOptions{}))
	var followed strings.Builder
	buf := make([]byte, 1024)
	for {
		k, err := stream.Read(buf)
		followed.Write(buf[:k])
		if err != nil {
			break
		}
	}
	require.Equal(t, string(text), followed.String())
}

// TestWithoutAPIServer restarts agent and containers while no API server answers.
func TestWithoutAPIServer(t *testing.T) {
	n := startNode(t)
	n.pod("p", nil)
	pod := n.await("p", "ready", isReady)
	n.stop()
	n.rest.Host = "https://127.0.0.1:1" // nothing listens there
	n.start()
	client := runtimeapi.NewRuntimeServiceClient(n.runtime.Conn())
	id := strings.TrimPrefix(pod.Status.ContainerStatuses[0].ContainerID, "simulated://")
	_, err := client.StopContainer(t.Context(), &runtimeapi.StopContainerRequest{ContainerId: id})
	require.NoError(t, err)
	running := &runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}}
	require.Eventually(t, func() bool { // one that is only created when the agent stops would be made anew, as attempt 2
		list, err := client.ListContainers(t.Context(), &runtimeapi.ListContainersRequest{Filter: running})
		return err == nil && len(list.Containers) == 1 && list.Containers[0].GetMetadata().GetAttempt() == 1
	}, patience, 50*time.Millisecond, "restarted from its checkpoint")
	n.stop()
	n.rest = n.cluster.NodeREST("n1")
	n.start()
	n.await("p", "restarted", func(p *corev1.Pod) bool { return p.Status.ContainerStatuses[0].RestartCount == 1 && isReady(p) })
}
