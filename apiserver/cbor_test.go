package apiserver

import (
	"testing"

	"github.com/stretchr/testify/require"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/client-go/kubernetes/scheme"

	"kontiki/watch"
)

func uncbor(t *testing.T, data []byte) (value any) {
	t.Helper()
	require.NoError(t, direct.Unmarshal(data, &value))
	return value
}

// Heads of all sizes are what RFC 8949, section 3, says.
func TestCBORHeads(t *testing.T) {
	for n, want := range map[int][]byte{
		0: {0x80}, 23: {0x97}, 24: {0x98, 24}, 255: {0x98, 255}, 256: {0x99, 1, 0}, 65535: {0x99, 255, 255}, 65536: {0x9a, 0, 1, 0, 0},
	} {
		require.Equal(t, want, appendCBORHead(nil, cborArray, n))
	}
}

// A frame is an item of its own, with the object as kube-apiserver's encoder writes it.
func TestCBORFrame(t *testing.T) {
	pod := examplePods()[0]
	f := form{format: formatCBOR}
	stream := &watchStream{form: f, encoder: encoderFor(f, podKind)}
	object, err := stream.encode(&watch.Event{Type: watch.Added, Object: cached(pod), Revision: 7})
	require.NoError(t, err)
	require.NoError(t, stream.append("ADDED", object))
	require.Equal(t, map[string]any{"type": "ADDED", "object": uncbor(t, upstream(t, formatCBOR, pod))}, uncbor(t, stream.buffer))
}

func TestCBORPartialList(t *testing.T) {
	pieces, err := encoderFor(form{format: formatCBOR, as: asPartialList, version: "v1"}, podKind).
		list(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadataList"), metav1.ListMeta{ResourceVersion: "9"}, []*watch.Object{cached(examplePods()[0])})
	require.NoError(t, err)
	var data []byte
	for _, piece := range pieces {
		data = append(data, piece...)
	}
	var list metav1.PartialObjectMetadataList
	require.NoError(t, direct.Unmarshal(data, &list))
	require.Equal(t, "9", list.ResourceVersion)
	require.Equal(t, "PartialObjectMetadata", list.Items[0].Kind)
	require.Equal(t, examplePods()[0].Labels, list.Items[0].Labels)
}

// What we write apimachinery's own serializer reads back.
func TestCBORIsReadBack(t *testing.T) {
	for _, pod := range examplePods() {
		data, err := encoderFor(form{format: formatCBOR}, podKind).object(cached(pod))
		require.NoError(t, err)
		obj, kind, err := cbor.NewSerializer(scheme.Scheme, scheme.Scheme, cbor.Strict(true)).Decode(data, nil, nil)
		require.NoError(t, err)
		require.Equal(t, podKind, *kind)
		got := obj.(*corev1.Pod)
		got.TypeMeta = metav1.TypeMeta{}
		require.True(t, got.CreationTimestamp.Equal(&pod.CreationTimestamp))
		got.CreationTimestamp = pod.CreationTimestamp
		require.Equal(t, pod, got)
	}
}
