package storage

import (
	"bytes"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kontiki/apiserver/registry"
)

func FuzzContinueToken(f *testing.F) {
	f.Add(continueToken{Revision: 7, Start: "ns/name\x00"}.String())
	f.Add(continueToken{Revision: newestRevision, Start: "a"}.String())
	f.Add("eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIuLi8uLi94In0")
	f.Fuzz(func(t *testing.T, text string) {
		token, err := parseContinue(text)
		if err != nil {
			require.ErrorIs(t, err, ErrContinueToken)
			return
		}
		require.True(t, strings.HasPrefix(path.Join("/registry/pods", token.Start), "/registry/pods/"), "%q leads out of the prefix", token.Start)
		again, err := parseContinue(token.String())
		require.NoError(t, err)
		require.Equal(t, token, again)
	})
}

func builtinCodec() codec {
	row := registry.Builtin(registry.Options{}).Lookup(schema.GroupVersionResource{Version: "v1", Resource: "pods"})
	return codec{row: row, hub: row}
}

func customCodec() codec {
	row := &registry.Resource{
		GroupVersionResource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"},
		Kind:                 "Widget",
		New:                  func() runtime.Object { return &unstructured.Unstructured{} },
	}
	return codec{row: row, hub: row}
}

// FuzzDecode: whatever is in the store, reading it gives an object or an error; and an object that
// was read is stored as the same bytes from then on (which is what makes no-op writes free).
func FuzzDecode(f *testing.F) {
	codecs := []codec{builtinCodec(), customCodec()}
	pod, err := codecs[0].Encode(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"a": "b", "c": "d"}}})
	require.NoError(f, err)
	f.Add(pod)
	f.Add([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}`))
	f.Add([]byte("k8s\x00"))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, value []byte) {
		for _, c := range codecs {
			obj, err := c.Decode("/k", value, 7)
			if err != nil {
				continue
			}
			first, err := c.Encode(obj)
			require.NoError(t, err)
			obj, err = c.Decode("/k", first, 8)
			require.NoError(t, err)
			second, err := c.Encode(obj)
			require.NoError(t, err)
			require.True(t, bytes.Equal(first, second), "%q became %q", first, second)
		}
	})
}
