package ownership

import (
	"encoding/json"
	"errors"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"

	"kontiki/apiserver/openapi"
	"kontiki/apiserver/registry"
)

// ownerships are what the creator of obj owns, by ours and by apimachinery's way; ok is false where ours gives up.
func ownerships(t testing.TB, o *Tracker, r *registry.Resource, obj runtime.Object) (ours, theirs string, ok bool) {
	obj.GetObjectKind().SetGroupVersionKind(r.GroupVersionKind())
	metadata(obj).SetManagedFields(nil)
	fields, err := o.createdFields(r)
	require.NoError(t, err)
	entries, err := fields.entries(obj.DeepCopyObject(), "me")
	if errors.Is(err, errIrregular) {
		return "", "", false
	}
	require.NoError(t, err)
	manager, err := o.manager(r, "")
	require.NoError(t, err)
	live := r.New()
	live.GetObjectKind().SetGroupVersionKind(r.GroupVersionKind())
	tracked, err := manager.Update(live, obj, "me")
	require.NoError(t, err, r.Resource)
	return textOf(t, entries), textOf(t, metadata(tracked).GetManagedFields()), true
}

func textOf(t testing.TB, entries []metav1.ManagedFieldsEntry) string {
	for i := range entries {
		require.NotNil(t, entries[i].Time)
		entries[i].Time = nil
	}
	data, err := json.Marshal(entries)
	require.NoError(t, err)
	return string(data)
}

// Creators of objects of all kinds come to own the same fields as with apimachinery's field manager.
func TestCreatedFields(t *testing.T) {
	table := registry.Builtin(registry.Options{})
	codecs := serializer.NewCodecFactory(table.Scheme())
	o, compared, all := New(table, openapi.NewBase(table)), 0, 0
	for seed := range int64(20) {
		fill := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, flatSchemas), rand.NewSource(seed), codecs).NilChance(float64(seed%4) / 4)
		for _, r := range table.Resources() {
			if r.Answers != nil {
				continue
			}
			obj := r.New()
			fill.Fill(obj)
			all++
			if ours, theirs, ok := ownerships(t, o, r, obj); ok {
				compared++
				require.Equal(t, theirs, ours, "%s, seed %d", r.Resource, seed)
			}
		}
	}
	require.Greater(t, compared, all*9/10)
}

// Objects as people write them are never given up on.
func TestCreatedFieldsOfPods(t *testing.T) {
	table := registry.Builtin(registry.Options{})
	r, o := table.Lookup(corev1.SchemeGroupVersion.WithResource("pods")), New(table, openapi.NewBase(table))
	env := []corev1.EnvVar{{Name: "a", Value: "1"}, {Name: "b"}, {Name: "a", Value: "2"}, {Name: "a"}}
	for name, pod := range map[string]*corev1.Pod{
		"empty":          {},
		"no items":       {Spec: corev1.PodSpec{Containers: []corev1.Container{}, Tolerations: []corev1.Toleration{}, NodeSelector: map[string]string{}}},
		"labels":         {ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "", "b": "c"}, Finalizers: []string{"x/y"}}},
		"containers":     {Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "i", Ports: []corev1.ContainerPort{{ContainerPort: 80}}}, {Name: "b"}}}},
		"a status":       {Status: corev1.PodStatus{Phase: corev1.PodRunning}},
		"a selector":     {Spec: corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{}, Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}}},
		"one name twice": {Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Env: env[1:3]}}}},
	} {
		ours, theirs, ok := ownerships(t, o, r, pod)
		require.True(t, ok, name)
		require.Equal(t, theirs, ours, name)
	}
	_, _, ok := ownerships(t, o, r, &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Env: env}}}})
	require.False(t, ok, "a name twice in a list is left to apimachinery")
}

func BenchmarkCreate(b *testing.B) {
	table := registry.Builtin(registry.Options{})
	owners, row := New(table, openapi.NewBase(table)), table.Lookup(corev1.SchemeGroupVersion.WithResource("pods"))
	for b.Loop() {
		_, err := owners.Create(row, benchedPod(), "me")
		require.NoError(b, err)
	}
}

func BenchmarkUpdate(b *testing.B) {
	table := registry.Builtin(registry.Options{})
	owners, row := New(table, openapi.NewBase(table)), table.Lookup(corev1.SchemeGroupVersion.WithResource("pods"))
	for b.Loop() {
		_, err := owners.Update(row, "", row.New(), benchedPod(), "me")
		require.NoError(b, err)
	}
}

func benchedPod() *corev1.Pod {
	no := false
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"app": "bench"}}, Spec: corev1.PodSpec{
		SchedulerName: "nobody", AutomountServiceAccountToken: &no,
		Containers: []corev1.Container{{Name: "hello", Image: "kontiki.local/hello:latest"}},
	}}
}

// flatSchemas keeps random schemas from growing without end: theirs is the one type that contains itself.
func flatSchemas(serializer.CodecFactory) []any {
	return []any{
		func(s *apiextensionsv1.JSONSchemaProps, c randfill.Continue) {
			c.Fill(&s.Type)
			c.Fill(&s.Required)
			if c.Bool() {
				s.Properties = map[string]apiextensionsv1.JSONSchemaProps{"a": {Type: "string"}}
			}
		},
		func(j *apiextensionsv1.JSON, _ randfill.Continue) { j.Raw = []byte(`{"a":1}`) },
	}
}
