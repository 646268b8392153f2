package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"kontiki/watch"
)

// An encoder writes the objects of one kind in one form. It splits an encoding into the object's
// body, which watch.Object computes once for everybody, and the envelope that names its kind,
// which differs between a single answer, an item of a list and a frame of a watch.
type encoder struct {
	form
	kind   schema.GroupVersionKind // of one object, as written
	memo   string                  // the name that bodies are remembered under
	shaped func(runtime.Object) (runtime.Object, error)
	// named is set where the items of a list name their kind: custom resources and partial objects do, built-in kinds do not.
	named bool
}

// encoderFor writes objects of kind in form f. Tables are not made of bodies: see tables.go.
func encoderFor(f form, kind schema.GroupVersionKind) encoder {
	e := encoder{form: f, kind: kind, memo: "json", shaped: func(obj runtime.Object) (runtime.Object, error) { return obj, nil }}
	switch f.format {
	case formatProtobuf:
		e.memo = "protobuf"
	case formatCBOR:
		e.memo = "cbor"
	}
	if f.as == asPartial || f.as == asPartialList {
		e.kind = schema.GroupVersionKind{Group: metav1.GroupName, Version: f.version, Kind: string(asPartial)}
		e.memo += "+metadata"
		e.shaped = partialMetadata
		e.named = true
	}
	return e
}

func partialMetadata(obj runtime.Object) (runtime.Object, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	return meta.AsPartialObjectMetadata(accessor), nil
}

// body returns the encoding of obj without its envelope: a JSON object or a CBOR map without kind and
// apiVersion, or a protobuf message.
func (e encoder) body(obj *watch.Object) ([]byte, error) {
	return obj.Encoded(e.memo, e.encodeBody)
}

func (e encoder) encodeBody(obj runtime.Object) ([]byte, error) {
	shaped, err := e.shaped(obj)
	if err != nil {
		return nil, err
	}
	switch e.format {
	case formatProtobuf:
		return marshalMessage(shaped)
	case formatCBOR:
		return marshalCBOR(shaped)
	}
	if u, ok := shaped.(*unstructured.Unstructured); ok {
		return json.Marshal(bareFields(u))
	}
	data, err := json.Marshal(shaped)
	if err != nil {
		return nil, err
	}
	return withoutKind(data, shaped.GetObjectKind().GroupVersionKind()), nil
}

// bareFields are those of a custom resource, without its kind.
func bareFields(u *unstructured.Unstructured) map[string]any {
	bare := maps.Clone(u.Object)
	delete(bare, "kind")
	delete(bare, "apiVersion")
	return bare
}

// withoutKind cuts the type off the front of an object's JSON. Typed objects have it there, if at all.
func withoutKind(data []byte, kind schema.GroupVersionKind) []byte {
	if kind.Empty() {
		return data
	}
	front := kindFields(kind)
	rest, ok := bytes.CutPrefix(data, front)
	if !ok {
		return data
	}
	rest = bytes.TrimPrefix(rest, []byte(","))
	return append([]byte("{"), rest...)
}

// kindFields is how the JSON of an object of kind begins.
func kindFields(kind schema.GroupVersionKind) []byte {
	apiVersion, name := kind.ToAPIVersionAndKind()
	return fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q`, name, apiVersion)
}

// appendObject appends one whole object, in JSON, protobuf or (without the tag) CBOR.
func (e encoder) appendObject(out, body []byte) []byte {
	switch e.format {
	case formatProtobuf:
		return appendUnknown(out, e.kind, body)
	case formatCBOR:
		return appendCBORObject(out, e.kind, body)
	}
	out = append(out, kindFields(e.kind)...)
	if len(body) > len("{}") {
		out = append(out, ',')
	}
	return append(out, body[1:]...)
}

// object returns the encoding of obj as an answer of its own.
func (e encoder) object(obj *watch.Object) ([]byte, error) {
	body, err := e.body(obj)
	if err != nil {
		return nil, err
	}
	return finish(e.form, e.appendObject(make([]byte, 0, len(body)+128), body))
}

// any returns the encoding of an object that is not shared: a Status, a Scale, the result of a dry run.
func (e encoder) any(obj runtime.Object) ([]byte, error) {
	body, err := e.encodeBody(obj)
	if err != nil {
		return nil, err
	}
	return finish(e.form, e.appendObject(nil, body))
}

// list returns the encoding of a list of kind in pieces. Most of them are the bodies of the items,
// shared with everybody else who reads these: a list that many ask for at once and few take in time
// is in memory once. Only YAML and pretty JSON are made anew.
func (e encoder) list(kind schema.GroupVersionKind, listMeta metav1.ListMeta, items []*watch.Object) ([][]byte, error) {
	bodies := make([][]byte, len(items))
	for i, item := range items {
		body, err := e.body(item)
		if err != nil {
			return nil, err
		}
		bodies[i] = body
	}
	switch e.format {
	case formatProtobuf:
		return listMessage(kind, listMeta, bodies)
	case formatCBOR:
		for i, body := range bodies {
			if e.named {
				bodies[i] = e.appendObject(nil, body)
			}
		}
		return cborList(kind, listMeta, bodies)
	}
	metadata, err := json.Marshal(listMeta)
	if err != nil {
		return nil, err
	}
	head := append(append(kindFields(kind), `,"metadata":`...), metadata...)
	pieces := append(make([][]byte, 0, 3*len(bodies)+2), append(head, `,"items":[`...))
	front := append(kindFields(e.kind), ',')
	for i, body := range bodies {
		if i > 0 {
			pieces = append(pieces, comma)
		}
		if e.named && len(body) > len("{}") {
			pieces, body = append(pieces, front), body[1:]
		}
		pieces = append(pieces, body)
	}
	if e.format == formatYAML || e.pretty {
		data, err := finish(e.form, bytes.Join(append(pieces, []byte("]}")), nil))
		return [][]byte{data}, err
	}
	return append(pieces, []byte("]}\n")), nil
}

var comma = []byte(",")

// finish turns compact JSON into what was asked for, and says of CBOR that it is. Protobuf passes.
func finish(f form, data []byte) ([]byte, error) {
	switch {
	case f.format == formatProtobuf:
		return data, nil
	case f.format == formatCBOR:
		return append(selfDescribed[:len(selfDescribed):len(selfDescribed)], data...), nil
	case f.format == formatYAML:
		return yaml.JSONToYAML(data)
	case f.pretty:
		var out bytes.Buffer
		if err := json.Indent(&out, data, "", "  "); err != nil {
			return nil, err
		}
		return out.Bytes(), nil
	}
	return append(data, '\n'), nil
}

// encodeAny encodes an object whose own TypeMeta names its kind.
func encodeAny(f form, obj runtime.Object) ([]byte, error) {
	f.as = asObject
	return encoderFor(f, obj.GetObjectKind().GroupVersionKind()).any(obj)
}
