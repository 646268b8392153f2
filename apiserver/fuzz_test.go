package apiserver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/types"

	"kontiki/apiserver/openapi"
	"kontiki/apiserver/ownership"
	"kontiki/apiserver/registry"
)

// fuzzed is a server with all that stands before the store, and a target in it.
func fuzzed() (*Server, *target) {
	table := registry.Builtin(registry.Options{})
	s := &Server{table: table, owners: ownership.New(table, openapi.NewBase(table)),
		codecs: serializer.NewCodecFactory(table.Scheme(), serializer.WithSerializer(cbor.NewSerializerInfo))}
	row := table.Lookup(schema.GroupVersionResource{Version: "v1", Resource: "pods"})
	return s, &target{resource: row, namespace: "default", name: "p", verb: "patch"}
}

func fuzzedPod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default", UID: "u", ResourceVersion: "7", Labels: map[string]string{"a": "b"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i", Ports: []corev1.ContainerPort{{ContainerPort: 80}, {ContainerPort: 443}}}}}}
	pod.SetGroupVersionKind(podKind)
	return pod
}

// refused requires of an error that it tells the client what the client did wrong.
func refused(t *testing.T, err error) {
	t.Helper()
	code := statusOf(err).Code
	require.True(t, code >= 400 && code < 500, "%d %v", code, err)
}

// FuzzPatch: a patch of any type gives a pod, which its field manager takes, or an error that is the client's fault.
func FuzzPatch(f *testing.F) {
	for i, body := range []string{
		`[{"op":"add","path":"/metadata/labels/x","value":"y"},{"op":"copy","from":"/spec","path":"/status"},{"op":"test","path":"/kind","value":"Pod"}]`,
		`{"metadata":{"labels":{"a":null,"x":"y"}},"spec":{"containers":null}}`,
		`{"spec":{"containers":[{"name":"c","image":"j","ports":[{"$patch":"delete","containerPort":80}]},{"$patch":"replace"}],"$setElementOrder/containers":[{"name":"c"}]}}`,
		"apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {x: y}}\nspec: {containers: [{name: c, image: j}, {name: d, image: k}]}\n",
	} {
		f.Add(uint8(i), []byte(body))
	}
	s, t0 := fuzzed()
	kinds := []types.PatchType{types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType, types.ApplyYAMLPatchType}
	f.Fuzz(func(t *testing.T, kind uint8, body []byte) {
		p := patch{kind: kinds[int(kind)%len(kinds)], body: body, options: writeOptions{manager: "m", force: true, validation: metav1.FieldValidationWarn}}
		ctx := context.WithValue(t.Context(), factsKey{}, &requestFacts{})
		var next runtime.Object
		var err error
		if p.kind == types.ApplyYAMLPatchType {
			next, err = s.apply(ctx, t0, p, fuzzedPod())
		} else {
			next, err = s.patched(ctx, podKind, t0.resource.New, p, fuzzedPod())
		}
		if err != nil {
			refused(t, err)
			return
		}
		require.IsType(t, &corev1.Pod{}, next)
		t0.resource.Default(next)
		_, err = s.track(t0, fuzzedPod(), next, "m")
		require.NoError(t, err)
	})
}

// FuzzBody: a body in any media type gives an object that all formats can show, and that is read back as it was, or a 400.
func FuzzBody(f *testing.F) {
	for i, kind := range []format{formatJSON, formatYAML, formatProtobuf, formatCBOR} {
		data, err := encodeAny(form{format: kind}, fuzzedPod())
		require.NoError(f, err)
		f.Add(uint8(i), data)
	}
	s, t0 := fuzzed()
	f.Fuzz(func(t *testing.T, kind uint8, body []byte) {
		format := formats[int(kind)%len(formats)]
		info, err := serializerFor(s.codecs, string(format), true)
		require.NoError(t, err)
		ctx := context.WithValue(t.Context(), factsKey{}, &requestFacts{})
		obj, err := s.decodeObject(ctx, info, body, podKind, t0.resource.New, metav1.FieldValidationWarn, nil)
		if err != nil {
			refused(t, err)
			return
		}
		require.IsType(t, &corev1.Pod{}, obj)
		obj.GetObjectKind().SetGroupVersionKind(podKind)
		for _, other := range formats {
			data, err := encodeAny(form{format: other}, obj)
			if err != nil {
				continue // text that is no UTF-8, which protobuf alone can carry in
			}
			info, err := serializerFor(s.codecs, string(other), true)
			require.NoError(t, err)
			again, err := s.decodeObject(ctx, info, data, podKind, t0.resource.New, metav1.FieldValidationIgnore, nil)
			require.NoError(t, err, "%s %q", other, data)
			if name := obj.(*corev1.Pod).Name; utf8.ValidString(name) { // protobuf carries others, which JSON writes as U+FFFD
				require.Equal(t, name, again.(*corev1.Pod).Name)
			}
		}
	})
}

// FuzzSelectors: selectors and the other options of a list are understood, and mean the same when they are written again, or refused.
func FuzzSelectors(f *testing.F) {
	for _, query := range []string{"labelSelector=a%3Db,c+in+(d,e),!f,g!%3Dh", "fieldSelector=metadata.name%3Dp,spec.nodeName!%3Dn", "limit=7&continue=x",
		"resourceVersion=7&resourceVersionMatch=Exact", "sendInitialEvents=true&watch=1&timeoutSeconds=5"} {
		f.Add(query)
	}
	_, t0 := fuzzed()
	f.Fuzz(func(t *testing.T, query string) {
		for _, verb := range []string{"list", "watch"} {
			on := *t0
			on.verb, on.name = verb, ""
			options, err := listOptions(&http.Request{URL: &url.URL{RawQuery: query}}, &on)
			if err != nil {
				refused(t, err)
				continue
			}
			chosen := selection(&on, options)
			written := url.Values{}
			if chosen.Labels != nil {
				written.Set("labelSelector", chosen.Labels.String())
			}
			if chosen.Fields != nil {
				written.Set("fieldSelector", chosen.Fields.String())
			}
			again, err := listOptions(httptest.NewRequest("GET", "/?"+written.Encode(), nil), &on)
			require.NoError(t, err)
			require.Equal(t, text(chosen.Labels), text(selection(&on, again).Labels))
			require.Equal(t, text(chosen.Fields), text(selection(&on, again).Fields))
		}
	})
}

func text(selector interface{ String() string }) string {
	if selector == nil {
		return ""
	}
	return selector.String()
}
