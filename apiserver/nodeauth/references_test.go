package nodeauth

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// fill sets everything in v: pointers, one element of each slice and map, and "x" for each text.
func fill(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Pointer:
		if depth > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), depth-1)
		}
	case reflect.Slice:
		if depth > 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0), depth-1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth)
		fill(value, depth)
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), depth)
			}
		}
	case reflect.String:
		v.SetString("x")
	}
}

// TestEveryFieldOfAPod: a pod with all that a pod can have, quantities of volumes among it, is read to its end. Each server
// reads all pods in the background, and would end with it otherwise.
func TestEveryFieldOfAPod(t *testing.T) {
	pod := &corev1.Pod{}
	fill(reflect.ValueOf(pod).Elem(), 12)
	require.NotNil(t, pod.Spec.Volumes[0].EmptyDir.SizeLimit)
	require.NotNil(t, pod.Spec.Volumes[0].Projected.Sources[0].ClusterTrustBundle.LabelSelector)
	found := referencesOf(pod)
	for kind, names := range map[string][]string{
		"secrets": found.secrets, "config maps": found.configMaps, "claims": found.claims, "resource claims": found.resourceClaims,
	} {
		require.Contains(t, names, "x", kind)
	}
	require.Contains(t, found.claims, "x-x", "of an ephemeral volume")
}
