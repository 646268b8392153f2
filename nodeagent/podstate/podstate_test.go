package podstate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kontiki/nodeagent/podspec"
	"kontiki/nodeagent/probe"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// pod builds a pod from words: "init", "side*" (a sidecar) before "|", main containers after it.
func pod(policy corev1.RestartPolicy, words string) *corev1.Pod {
	always := corev1.ContainerRestartPolicyAlways
	p := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: policy}}
	init, main, _ := strings.Cut(words, "|")
	for _, name := range strings.Fields(init) {
		c := corev1.Container{Name: strings.TrimSuffix(name, "*"), Image: "i"}
		if strings.HasSuffix(name, "*") {
			c.RestartPolicy = &always
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
	for _, name := range strings.Fields(main) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: name, Image: "i"})
	}
	return p
}

// state builds a state with one ready sandbox from words NAME:running, NAME:CODE or NAME:CODE@SECONDS (ended so long ago),
// each of which is one more attempt of the container.
func state(words string) *State {
	s := &State{Containers: map[string][]*Instance{}, Sandboxes: []*runtimeapi.PodSandboxStatus{{
		Id: "s0", Metadata: &runtimeapi.PodSandboxMetadata{}, State: runtimeapi.PodSandboxState_SANDBOX_READY}}}
	for i, word := range strings.Fields(words) {
		name, rest, _ := strings.Cut(word, ":")
		attempt := uint32(len(s.Containers[name]))
		in := &Instance{SandboxID: "s0", ContainerStatus: &runtimeapi.ContainerStatus{
			Id: fmt.Sprintf("%s-%d", name, attempt), Metadata: &runtimeapi.ContainerMetadata{Name: name, Attempt: attempt},
			Image:       &runtimeapi.ImageSpec{Image: "i"},
			CreatedAt:   now.Add(-time.Hour).UnixNano() + int64(i),
			StartedAt:   now.Add(-time.Hour).UnixNano() + int64(i),
			State:       runtimeapi.ContainerState_CONTAINER_RUNNING,
			Annotations: map[string]string{podspec.AnnotationHash: podspec.Hash(&corev1.Container{Name: name, Image: "i"})},
		}}
		if rest != "running" {
			code, ago, _ := strings.Cut(rest, "@")
			n, _ := strconv.Atoi(code)
			seconds, _ := strconv.Atoi(ago)
			in.State, in.ExitCode = runtimeapi.ContainerState_CONTAINER_EXITED, int32(n)
			in.FinishedAt = now.Add(-time.Duration(seconds) * time.Second).UnixNano()
			in.StartedAt, in.CreatedAt = in.FinishedAt-1e9, in.FinishedAt-1e9
		}
		s.Containers[name] = append(s.Containers[name], in)
	}
	s.Sort()
	return s
}

func healthy(string) probe.Result { return probe.Result{Started: true, Ready: true} }

// describe writes a plan in words.
func describe(p *Plan) string {
	var out []string
	if p.CreateSandbox {
		out = append(out, "sandbox")
	}
	for _, s := range p.Start {
		out = append(out, fmt.Sprintf("start %s#%d", s.Container.Name, s.Attempt))
	}
	for _, k := range p.Kill {
		out = append(out, "kill "+k.Instance.Id)
	}
	for name, w := range p.Waiting {
		out = append(out, "wait "+name+" "+w.Reason)
	}
	if p.Finished {
		out = append(out, "finished")
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func TestNext(t *testing.T) {
	const always, onFailure, never = corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever
	for _, c := range []struct {
		policy       corev1.RestartPolicy
		pod, state   string
		want, reason string
	}{
		{always, "|a b", "", "start a#0, start b#0", "main containers start together"},
		{always, "|a b", "a:running b:running", "", "nothing to do"},
		{always, "i j|a", "", "start i#0", "init containers start one by one"},
		{always, "i j|a", "i:running", "", "and wait for each other"},
		{always, "i j|a", "i:0", "start j#0", ""},
		{always, "i j|a", "i:0 j:0", "start a#0", ""},
		{always, "i|a", "i:1", "start i#1", "a failed init container is tried again at once the first time"},
		{always, "i|a", "i:1 i:1", "wait i CrashLoopBackOff", "then with back-off"},
		{never, "i|a", "i:1", "finished", "unless the policy is Never"},
		{always, "i|a", "a:running", "", "init containers that were forgotten are over when a main one runs"},
		{always, "s* i|a", "s:running", "start i#0", "a sidecar that runs lets the next one start"},
		{always, "s* i|a", "s:running i:0", "start a#0", ""},
		{always, "s*|a", "s:1 a:running", "start s#1", "a sidecar is restarted while mains run (ND-13)"},
		{never, "s*|a", "s:0 a:running", "start s#1", "whatever the pod's policy"},
		{always, "s*|a", "s:running a:1", "start a#1", "a main restarts and the sidecar is left alone (ND-13)"},
		{never, "s*|a", "s:running a:0", "kill s-0", "the work is done: sidecars are stopped"},
		{never, "s* r*|a", "s:running r:running a:0", "kill r-0", "in reverse order"},
		{never, "s* r*|a", "s:running r:0 a:0", "kill s-0", ""},
		{never, "|a", "a:0", "finished", ""},
		{never, "|a", "a:3", "finished", ""},
		{never, "|a b", "a:0 b:running", "", ""},
		{onFailure, "|a", "a:0", "finished", ""},
		{onFailure, "|a", "a:1", "start a#1", ""},
		{always, "|a", "a:0", "start a#1", "Always restarts success too"},
		{always, "|a", "a:0 a:0@5", "wait a CrashLoopBackOff", ""},
		{always, "|a", "a:0 a:0@11", "start a#2", ""},
		{always, "|a b", "a:1 a:1@3 b:running", "wait a CrashLoopBackOff", "the fine container is left alone"},
	} {
		got := describe(Next(pod(c.policy, c.pod), state(c.state), healthy, now))
		require.Equal(t, c.want, got, "%s: pod %q, state %q (%s)", c.policy, c.pod, c.state, c.reason)
	}
}

func TestNextSandbox(t *testing.T) {
	s := state("a:running")
	s.Sandboxes[0].State = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
	p := Next(pod(corev1.RestartPolicyAlways, "i|a"), s, healthy, now)
	require.True(t, p.CreateSandbox)
	require.Equal(t, uint32(1), p.Attempt)
	require.Equal(t, []string{"s0"}, p.StopSandboxes)

	s = state("i:0 a:137")
	s.Sandboxes = append(s.Sandboxes, &runtimeapi.PodSandboxStatus{Id: "s1", Metadata: &runtimeapi.PodSandboxMetadata{Attempt: 1}})
	s.Sandboxes[0].State = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
	s.Sort()
	require.Equal(t, "start i#1", describe(Next(pod(corev1.RestartPolicyAlways, "i|a"), s, healthy, now)), "a new sandbox is initialized anew")
	require.Equal(t, "finished", describe(Next(pod(corev1.RestartPolicyNever, "|a"), s, healthy, now)), "but not made for a pod that is done")
}

func TestNextKills(t *testing.T) {
	p := pod(corev1.RestartPolicyAlways, "|a")
	grace := int64(3)
	p.Spec.Containers[0].LivenessProbe = &corev1.Probe{TerminationGracePeriodSeconds: &grace}
	sick := func(string) probe.Result { return probe.Result{Started: true, LivenessFailed: true} }
	plan := Next(p, state("a:running"), sick, now)
	require.Equal(t, "Container a failed liveness probe, will be restarted", plan.Kill[0].Message)
	require.Equal(t, &grace, plan.Kill[0].Grace)

	p.Spec.Containers[0].Image = "other"
	plan = Next(p, state("a:running"), healthy, now)
	require.Equal(t, "Container a definition changed, will be restarted", plan.Kill[0].Message)
	require.Equal(t, "start a#2", describe(Next(p, state("a:1 a:1@1"), healthy, now)), "a new image does not wait for the old one's back-off")
}

func TestNextWithStartupProbe(t *testing.T) {
	starting := func(string) probe.Result { return probe.Result{} }
	require.Empty(t, describe(Next(pod(corev1.RestartPolicyAlways, "s*|a"), state("s:running"), starting, now)))
	require.Equal(t, "start a#0", describe(Next(pod(corev1.RestartPolicyAlways, "s*|a"), state("s:running"), healthy, now)))
}

// TestBackOff_ND08 plays ND-08: a container that exits at once, twelve minutes long.
func TestBackOff_ND08(t *testing.T) {
	p := pod(corev1.RestartPolicyAlways, "|a")
	s := state("a:1")
	var delays []int
	for range 9 {
		last := s.Latest("a")
		at := last.Ended()
		plan := Next(p, s, healthy, at)
		if len(plan.Start) == 0 {
			require.Equal(t, ReasonCrashLoopBackOff, plan.Waiting["a"].Reason)
			at = plan.Wake
			plan = Next(p, s, healthy, at)
		}
		delays = append(delays, int(at.Sub(last.Ended()).Seconds()))
		next := &Instance{SandboxID: "s0", ContainerStatus: &runtimeapi.ContainerStatus{
			Metadata: &runtimeapi.ContainerMetadata{Name: "a", Attempt: plan.Start[0].Attempt}, State: runtimeapi.ContainerState_CONTAINER_EXITED, ExitCode: 1,
			CreatedAt: at.UnixNano(), StartedAt: at.UnixNano(), FinishedAt: at.Add(time.Second).UnixNano(),
			Annotations: map[string]string{podspec.AnnotationHash: podspec.Hash(&p.Spec.Containers[0]),
				podspec.AnnotationBackOff: strconv.Itoa(int(plan.Start[0].BackOff.Seconds()))},
		}}
		s.Containers["a"] = []*Instance{next, last}
	}
	require.Equal(t, []int{0, 10, 20, 40, 80, 160, 300, 300, 300}, delays)

	s.Latest("a").FinishedAt = s.Latest("a").StartedAt + int64(10*time.Minute)
	require.Len(t, Next(p, s, healthy, s.Latest("a").Ended()).Start, 1, "ten healthy minutes start the series anew")
}

func TestAttemptGoesOnFromTheAPI(t *testing.T) {
	p := pod(corev1.RestartPolicyAlways, "|a")
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", ContainerID: "x://1", RestartCount: 4}}
	require.Equal(t, "start a#5", describe(Next(p, state(""), healthy, now)))
}

func TestTerminate(t *testing.T) {
	for _, c := range []struct{ pod, state, want string }{
		{"|a b", "a:running b:running", "kill a-0, kill b-0"},
		{"s* r*|a", "s:running r:running a:running", "kill a-0"},
		{"s* r*|a", "s:running r:running a:0", "kill r-0"},
		{"s* r*|a", "s:running r:0 a:0", "kill s-0"},
		{"s* r*|a", "s:0 r:0 a:0", "finished"},
		{"i|a", "i:running", "kill i-0"},
		{"|a", "", "finished"},
		{"|a", "gone:running", "kill gone-0"},
	} {
		require.Equal(t, c.want, describe(Terminate(pod(corev1.RestartPolicyAlways, c.pod), state(c.state))), c)
	}
}

func TestPhase(t *testing.T) {
	const always, onFailure, never = corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever
	for _, c := range []struct {
		policy     corev1.RestartPolicy
		pod, state string
		terminal   bool
		want       corev1.PodPhase
	}{
		{always, "|a", "", false, corev1.PodPending},
		{always, "|a b", "a:running", false, corev1.PodPending},
		{always, "|a b", "a:running b:running", false, corev1.PodRunning},
		{always, "|a", "a:1 a:1", false, corev1.PodRunning},
		{always, "|a", "a:0", true, corev1.PodSucceeded},
		{always, "|a", "a:1", true, corev1.PodFailed},
		{never, "|a b", "a:0 b:0", false, corev1.PodSucceeded},
		{never, "|a b", "a:0 b:1", false, corev1.PodFailed},
		{never, "|a b", "a:1 b:running", false, corev1.PodRunning},
		{onFailure, "|a", "a:0", false, corev1.PodSucceeded},
		{onFailure, "|a", "a:1 a:1", false, corev1.PodRunning},
		{always, "i|a", "i:running", false, corev1.PodPending},
		{always, "i|a", "i:1 i:1", false, corev1.PodPending},
		{never, "i|a", "i:1", false, corev1.PodFailed},
		{always, "s*|a", "s:running", false, corev1.PodPending},
		{always, "s*|a", "s:running a:running", false, corev1.PodRunning},
		{never, "s*|a", "s:137 a:0", true, corev1.PodSucceeded},
		{always, "|a", "", true, corev1.PodFailed},
	} {
		p, s := pod(c.policy, c.pod), state(c.state)
		plan := Next(p, s, healthy, now)
		got := Status(p, Observation{State: s, Probes: healthy, Waiting: plan.Waiting, Terminal: c.terminal, Now: now})
		require.Equal(t, c.want, got.Phase, "%+v", c)
	}
}

func conditionsOf(s *corev1.PodStatus) string {
	var out []string
	for _, c := range s.Conditions {
		out = append(out, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason))
	}
	return strings.Join(out, "\n")
}

func TestConditions(t *testing.T) {
	p := pod(corev1.RestartPolicyAlways, "i|a")
	got := Status(p, Observation{State: state("i:running"), Probes: healthy, Now: now})
	require.Equal(t, "PodReadyToStartContainers=True \nInitialized=False ContainersNotInitialized\nReady=False ContainersNotReady\n"+
		"ContainersReady=False ContainersNotReady\nPodScheduled=True ", conditionsOf(got))

	p.Status = *got
	later := now.Add(time.Minute)
	got = Status(p, Observation{State: state("i:0 a:running"), Probes: healthy, Now: later})
	require.Equal(t, "PodReadyToStartContainers=True \nInitialized=True \nReady=True \nContainersReady=True \nPodScheduled=True ", conditionsOf(got))
	require.Equal(t, now, got.Conditions[0].LastTransitionTime.UTC(), "unchanged")
	require.Equal(t, later, got.Conditions[2].LastTransitionTime.UTC(), "changed")
	require.Equal(t, now, got.StartTime.UTC())

	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "x"}}
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: "x", Status: corev1.ConditionFalse})
	got = Status(p, Observation{State: state("i:0 a:running"), Probes: healthy, Now: later})
	require.Contains(t, conditionsOf(got), "Ready=False ReadinessGatesNotReady\nContainersReady=True")
	require.Contains(t, conditionsOf(got), "x=False", "conditions of others are kept")

	done := pod(corev1.RestartPolicyNever, "|a")
	got = Status(done, Observation{State: state("a:0"), Probes: healthy, Terminal: true, Now: now})
	require.Contains(t, conditionsOf(got), "Ready=False PodCompleted")
}

func TestContainerStatuses(t *testing.T) {
	p := pod(corev1.RestartPolicyAlways, "|a b")
	s := state("a:1 a:2 b:running")
	plan := Next(p, s, healthy, now)
	got := Status(p, Observation{State: s, Probes: healthy, Waiting: plan.Waiting, RuntimeName: "rt", Now: now}).ContainerStatuses
	require.Equal(t, ReasonCrashLoopBackOff, got[0].State.Waiting.Reason)
	require.Equal(t, "back-off 10s restarting failed container=a pod=_()", got[0].State.Waiting.Message)
	require.Equal(t, int32(2), got[0].LastTerminationState.Terminated.ExitCode)
	require.Equal(t, int32(1), got[0].RestartCount)
	require.Equal(t, "rt://a-1", got[0].ContainerID)
	require.True(t, got[1].Ready)
	require.True(t, *got[1].Started)

	s = state("a:1 a:running b:running")
	got = Status(p, Observation{State: s, Probes: healthy, Now: now}).ContainerStatuses
	require.Equal(t, int32(1), got[0].LastTerminationState.Terminated.ExitCode)
	require.NotNil(t, got[0].State.Running)
}

func TestFinishedPodStaysFinished(t *testing.T) {
	p := pod(corev1.RestartPolicyAlways, "|a")
	p.Status.Phase = corev1.PodFailed
	got := Status(p, Observation{State: state("a:0"), Probes: healthy, Terminal: true, Now: now})
	require.Equal(t, corev1.PodFailed, got.Phase)
}

func TestLostContainer(t *testing.T) {
	p := pod(corev1.RestartPolicyAlways, "|a")
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", ContainerID: "x://1", RestartCount: 4,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	got := Status(p, Observation{State: state(""), Probes: healthy, Now: now}).ContainerStatuses[0]
	require.Equal(t, "ContainerStatusUnknown", got.LastTerminationState.Terminated.Reason)
	require.Equal(t, int32(4), got.RestartCount)
}
