package apiserver

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

// CBOR (RFC 8949) is for clients that ask for it, as in Kubernetes with its feature gate CBORServingAndStorage. An answer is one
// data item under the tag that says it is CBOR; a watch is a sequence of such items (RFC 8742). Like JSON and protobuf it is
// put together around the bodies of the objects: a body is the map of an object without its kind and apiVersion,
// and to name the kind is to write a larger head and two more entries.

// selfDescribed is the head of tag 55799, "self-described CBOR" (RFC 8949 section 3.4.6).
var selfDescribed = []byte{0xd9, 0xd9, 0xf7}

// The major types that are written here, in the upper three bits of an item's first byte.
const (
	cborBytes byte = 2 << 5 // Kubernetes writes text as byte strings, which need no check of their UTF-8
	cborArray byte = 4 << 5
	cborMap   byte = 5 << 5
)

// appendCBORHead appends the head of an item: its major type and its length or count.
func appendCBORHead(out []byte, major byte, n int) []byte {
	switch {
	case n < 24:
		return append(out, major|byte(n))
	case n < 1<<8:
		return append(out, major|24, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(out, major|25), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(out, major|26), uint32(n))
}

func appendCBORString(out []byte, text string) []byte {
	return append(appendCBORHead(out, cborBytes, len(text)), text...)
}

// marshalCBOR returns the map of an object without its kind and apiVersion.
func marshalCBOR(obj runtime.Object) ([]byte, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		obj = &unstructured.Unstructured{Object: bareFields(u)}
	} else if !obj.GetObjectKind().GroupVersionKind().Empty() {
		obj = withKind(obj, schema.GroupVersionKind{})
	}
	data, err := direct.Marshal(obj)
	if err != nil {
		return nil, err
	}
	if len(data) == 0 || data[0]&0xe0 != cborMap || data[0]&0x1f >= 24 {
		return nil, fmt.Errorf("%T has no CBOR form that is a map of fewer than 24 fields", obj)
	}
	return data, nil
}

// appendCBORObject appends the map of a body with the kind in it.
func appendCBORObject(out []byte, kind schema.GroupVersionKind, body []byte) []byte {
	out = appendCBORHead(out, cborMap, int(body[0]&0x1f)+2)
	return append(appendCBORKind(out, kind), body[1:]...)
}

func appendCBORKind(out []byte, kind schema.GroupVersionKind) []byte {
	apiVersion, name := kind.ToAPIVersionAndKind()
	out = appendCBORString(appendCBORString(out, "kind"), name)
	return appendCBORString(appendCBORString(out, "apiVersion"), apiVersion)
}

// cborList returns a whole list, in pieces around those of the items.
func cborList(kind schema.GroupVersionKind, listMeta metav1.ListMeta, items [][]byte) ([][]byte, error) {
	metadata, err := direct.Marshal(listMeta)
	if err != nil {
		return nil, err
	}
	head := appendCBORHead(append([]byte(nil), selfDescribed...), cborMap, 4)
	head = append(appendCBORString(appendCBORKind(head, kind), "metadata"), metadata...)
	head = appendCBORHead(appendCBORString(head, "items"), cborArray, len(items))
	return append([][]byte{head}, items...), nil
}

// appendCBORFrame appends one watch event.
func appendCBORFrame(out []byte, eventType string, object []byte) []byte {
	out = appendCBORHead(append(out, selfDescribed...), cborMap, 2)
	out = appendCBORString(appendCBORString(out, "type"), eventType)
	return append(appendCBORString(out, "object"), object...)
}

// jsonOfCBOR is an applied configuration in the format that all others are in.
func jsonOfCBOR(body []byte) ([]byte, error) {
	var content map[string]any
	if err := direct.Unmarshal(body, &content); err != nil {
		return nil, badRequest("error decoding patch: %v", err)
	}
	return json.Marshal(content)
}
