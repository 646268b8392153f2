package apiserver

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"kontiki/watch"
)

var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

// examplePods have what encoders stumble over: quantities, times, empty and HTML-like strings.
func examplePods() []*corev1.Pod {
	created := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	return []*corev1.Pod{
		{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default", ResourceVersion: "7", CreationTimestamp: created,
			Labels: map[string]string{"b": "", "a": "<&>"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i", Env: []corev1.EnvVar{{Name: "X", Value: "\u2028"}}}}}},
		{},
	}
}

// podCodec stands in for the storage's: the cached object is what it was made from.
type podCodec struct{ pod *corev1.Pod }

func (c podCodec) Decode(string, []byte, int64) (runtime.Object, error) {
	pod := c.pod.DeepCopy()
	pod.SetGroupVersionKind(podKind) // as the storage's codec does
	return pod, nil
}

func (podCodec) Memos() *watch.Memos { return nil }

func (podCodec) Fields(runtime.Object) fields.Set { return nil }

func cached(pod *corev1.Pod) *watch.Object { return watch.NewObject("/k", nil, 7, 7, podCodec{pod}) }

// upstream encodes as kube-apiserver does: with apimachinery's serializers.
func upstream(t *testing.T, f format, obj runtime.Object) []byte {
	t.Helper()
	info, ok := runtime.SerializerInfoForMediaType(serializer.NewCodecFactory(scheme.Scheme, serializer.WithSerializer(cbor.NewSerializerInfo)).SupportedMediaTypes(), string(f))
	require.True(t, ok)
	out, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), obj)
	require.NoError(t, err)
	return out
}

func TestEncodingsAreUpstreams(t *testing.T) {
	for _, format := range []format{formatJSON, formatProtobuf, formatYAML, formatCBOR} {
		e := encoderFor(form{format: format}, podKind)
		list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "more"}}
		var items []*watch.Object
		for _, pod := range examplePods() {
			list.Items = append(list.Items, *pod)
			items = append(items, cached(pod))
			got, err := e.object(cached(pod))
			require.NoError(t, err)
			requireSameBytes(t, format, upstream(t, format, pod), got)
		}
		got, err := e.list(corev1.SchemeGroupVersion.WithKind("PodList"), list.ListMeta, items)
		require.NoError(t, err)
		requireSameBytes(t, format, upstream(t, format, list), bytes.Join(got, nil))

		got, err = e.list(corev1.SchemeGroupVersion.WithKind("PodList"), metav1.ListMeta{}, nil)
		require.NoError(t, err)
		requireSameBytes(t, format, upstream(t, format, &corev1.PodList{Items: []corev1.Pod{}}), bytes.Join(got, nil))
	}
}

// requireSameBytes compares JSON and protobuf byte for byte. In YAML and CBOR the order of keys differs at the top.
func requireSameBytes(t *testing.T, f format, want, got []byte) {
	t.Helper()
	if f == formatYAML {
		require.YAMLEq(t, string(want), string(got))
		return
	}
	if f == formatCBOR {
		require.Equal(t, uncbor(t, want), uncbor(t, got))
		require.Equal(t, selfDescribed, got[:3])
		return
	}
	require.Equal(t, string(want), string(got), f)
}

func TestPartialMetadata(t *testing.T) {
	pod := examplePods()[0]
	e := encoderFor(form{format: formatJSON, as: asPartial, version: "v1"}, podKind)
	got, err := e.object(cached(pod))
	require.NoError(t, err)
	var partial metav1.PartialObjectMetadata
	require.NoError(t, json.Unmarshal(got, &partial))
	require.Equal(t, metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"}, partial.TypeMeta)
	require.Equal(t, pod.Labels, partial.Labels)
	require.NotContains(t, string(got), "spec")
}

// A watch frame must be what client-go's decoder makes a WatchEvent of.
func TestWatchFrames(t *testing.T) {
	pod := examplePods()[0]
	for _, format := range []format{formatJSON, formatProtobuf} {
		stream := &watchStream{form: form{format: format}, encoder: encoderFor(form{format: format}, podKind)}
		object, err := stream.encode(&watch.Event{Type: watch.Modified, Object: cached(pod), Revision: 7})
		require.NoError(t, err)
		require.NoError(t, stream.append("MODIFIED", object))

		var event metav1.WatchEvent
		if format == formatJSON {
			require.Equal(t, 1, bytes.Count(stream.buffer, []byte("\n")), "a frame is one line")
			require.NoError(t, json.Unmarshal(stream.buffer, &event))
		} else {
			frames := protobuf.LengthDelimitedFramer.NewFrameReader(nopCloser{bytes.NewReader(stream.buffer)})
			frame := make([]byte, len(stream.buffer))
			n, err := frames.Read(frame)
			require.NoError(t, err)
			require.NoError(t, event.Unmarshal(frame[:n]))
		}
		require.Equal(t, "MODIFIED", event.Type)
		require.Equal(t, bytes.TrimSpace(upstream(t, format, pod)), bytes.TrimSpace(event.Object.Raw))
	}
}

type nopCloser struct{ *bytes.Reader }

func (nopCloser) Close() error { return nil }
