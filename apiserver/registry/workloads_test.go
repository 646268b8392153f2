package registry

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newPod is body after what a create does before validation.
func newPod(t *testing.T, body string) *corev1.Pod {
	table := Builtin(Options{})
	p := decoded(t, table, core("pods"), body).(*corev1.Pod)
	table.Lookup(core("pods")).Strategy.PrepareForCreate(context.Background(), p)
	return p
}

func TestGatedFieldsAreNotStored(t *testing.T) {
	p := newPod(t, podWith(`,"lifecycle":{"stopSignal":"SIGTERM"},"livenessProbe":{"httpGet":{"port":80,"protocol":"HTTP2"}},"volumeMounts":[{"name":"v","mountPath":"/v","bindMountOptions":["noexec"]}]`,
		`,"volumes":[{"name":"v","secret":{"secretName":"s","defaultUser":5,"items":[{"key":"k","path":"p","user":5}]}}]`))
	c := p.Spec.Containers[0]
	require.Nil(t, c.Lifecycle)
	require.Nil(t, c.LivenessProbe.HTTPGet.Protocol)
	require.Empty(t, c.VolumeMounts[0].BindMountOptions)
	require.Nil(t, p.Spec.Volumes[0].Secret.DefaultUser)
	require.Nil(t, p.Spec.Volumes[0].Secret.Items[0].User)
}

// AP-44: a pod that asks for something as a whole gets the rest from its containers.
func TestAP44PodResources(t *testing.T) {
	p := newPod(t, podWith(`,"resources":{"requests":{"cpu":"1"},"limits":{"memory":"64Mi"}}`, `,"resources":{"limits":{"cpu":"3"}}`))
	data, err := json.Marshal(p.Spec.Resources)
	require.NoError(t, err)
	require.JSONEq(t, `{"requests":{"cpu":"1","memory":"64Mi"},"limits":{"cpu":"3","memory":"64Mi"}}`, string(data))
}

func TestGatedPodIsNotScheduled(t *testing.T) {
	p := newPod(t, podWith("", `,"schedulingGates":[{"name":"example.com/g"}]`))
	require.Equal(t, corev1.PodReasonSchedulingGated, p.Status.Conditions[0].Reason)
}

func TestJobStatusIsNotTakenBack(t *testing.T) {
	old := &batchv1.Job{Status: batchv1.JobStatus{Failed: 2, Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue}}}}
	require.Empty(t, validateJobStatus(old.DeepCopy(), old))
	now := &batchv1.Job{Status: batchv1.JobStatus{Failed: 1, Active: 1, CompletionTime: &metav1.Time{}, Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}}}
	require.Equal(t, []string{
		"status.active: Invalid value: active>0 is invalid for finished job",
		"status.completionTime: Invalid value: cannot set completionTime when there is no Complete=True condition",
		"status.conditions: Invalid value: cannot disable the terminal FailureTarget=True condition",
		"status.conditions: Invalid value: cannot set Failed=True condition without the FailureTarget=true condition",
		"status.failed: Invalid value: cannot decrease the failed counter",
		"status.startTime: Required value: startTime is required for finished job",
	}, faultsOf(validateJobStatus(now, old)))
}

func TestShown(t *testing.T) {
	v := corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
		VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}}}}}
	data, err := json.Marshal(shown(&v))
	require.NoError(t, err)
	require.Contains(t, string(data), `{"Name":"v","HostPath":null,`)
	require.Contains(t, string(data), `"Ephemeral":{"VolumeClaimTemplate":{"labels":{"a":"b"},"Spec":{"AccessModes":null,`)
}
