package table

import (
	"encoding/json"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kontiki/apiserver/registry"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func configMaps() *registry.Resource {
	return registry.Builtin(registry.Options{}).Lookup(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
}

func configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "7", CreationTimestamp: metav1.NewTime(now.Add(-90 * time.Minute))},
		Data:       map[string]string{"k": "v", "l": "w"},
	}
}

func TestConvertIncludes(t *testing.T) {
	for include, kind := range map[metav1.IncludeObjectPolicy]string{
		metav1.IncludeMetadata: "PartialObjectMetadata", metav1.IncludeObject: "ConfigMap", metav1.IncludeNone: "",
	} {
		opts, err := ParseOptions(url.Values{"includeObject": {string(include)}}, now)
		require.NoError(t, err)
		opts.ListMeta.ResourceVersion = "9"
		shared := configMap()
		got := Convert(configMaps(), []runtime.Object{shared}, opts)
		require.Equal(t, []any{"a", int64(2), "90m"}, got.Rows[0].Cells)
		require.Len(t, got.ColumnDefinitions, 3)
		require.Empty(t, shared.Kind, "the shared object was written to")

		body, err := json.Marshal(got)
		require.NoError(t, err)
		var back struct {
			Kind     string
			Metadata metav1.ListMeta
			Rows     []struct{ Object *metav1.PartialObjectMetadata }
		}
		require.NoError(t, json.Unmarshal(body, &back))
		require.Equal(t, "Table", back.Kind)
		require.Equal(t, "9", back.Metadata.ResourceVersion)
		if kind == "" {
			require.Nil(t, back.Rows[0].Object)
			continue
		}
		require.Equal(t, kind, back.Rows[0].Object.Kind)
		require.Equal(t, "a", back.Rows[0].Object.Name)
	}
	_, err := ParseOptions(url.Values{"includeObject": {"Some"}}, now)
	require.ErrorContains(t, err, `"Some"`)
}

// AP-14: the columns travel with the first event only.
func TestAP14StreamSendsColumnsOnce(t *testing.T) {
	s := NewStream(configMaps(), Options{Include: metav1.IncludeNone})
	first, second := s.Next(configMap(), now), s.Next(configMap(), now)
	require.Len(t, first.ColumnDefinitions, 3)
	require.Empty(t, second.ColumnDefinitions)
	require.Equal(t, "7", second.ResourceVersion)

	end := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
	marked := s.Next(end, now).Rows[0].Object.Object.(*metav1.PartialObjectMetadata)
	require.Equal(t, "true", marked.Annotations[metav1.InitialEventsAnnotationKey])
}

func TestKindsWithoutColumnsShowNameAndAge(t *testing.T) {
	res := &registry.Resource{Kind: "ConfigMap", GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "x"}}
	got := Convert(res, []runtime.Object{configMap()}, Options{Now: now})
	require.Equal(t, []any{"a", "90m"}, got.Rows[0].Cells)
	require.Equal(t, "Age", got.ColumnDefinitions[1].Name)
}
