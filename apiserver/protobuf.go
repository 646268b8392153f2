package apiserver

import (
	"encoding/binary"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Protobuf answers are put together by hand around the messages of the objects, so that those are
// encoded once. The layouts (k8s.io/apimachinery, runtime/generated.proto and meta/v1/generated.proto):
//
//	envelope   "k8s\x00" Unknown
//	Unknown    1: TypeMeta{1: apiVersion, 2: kind}  2: raw  3: contentEncoding  4: contentType
//	any List   1: ListMeta  2: item, repeated
//	WatchEvent 1: type  2: RawExtension{1: envelope}
//	frame      length of the WatchEvent, four bytes, big-endian; WatchEvent
var protobufMagic = []byte{'k', '8', 's', 0}

// unknownTail are the empty fields 3 and 4, which every Kubernetes encoder writes.
var unknownTail = []byte{3<<3 | 2, 0, 4<<3 | 2, 0}

// message is what all generated protobuf types are.
type message interface{ Marshal() ([]byte, error) }

func marshalMessage(obj runtime.Object) ([]byte, error) {
	m, ok := obj.(message)
	if !ok {
		return nil, fmt.Errorf("%T has no protobuf form", obj)
	}
	return m.Marshal()
}

// appendField appends a length-delimited field.
func appendField(out []byte, number int, data []byte) []byte {
	return append(appendFieldHead(out, number, len(data)), data...)
}

func appendFieldHead(out []byte, number, length int) []byte {
	return binary.AppendUvarint(append(out, byte(number<<3|2)), uint64(length))
}

// fieldSize is how long appendField's output is.
func fieldSize(length int) int {
	size := 2 + length
	for n := length; n >= 0x80; n >>= 7 {
		size++
	}
	return size
}

func typeMetaMessage(kind schema.GroupVersionKind) []byte {
	apiVersion, name := kind.ToAPIVersionAndKind()
	return appendField(appendField(nil, 1, []byte(apiVersion)), 2, []byte(name))
}

// appendUnknown appends an object in its envelope.
func appendUnknown(out []byte, kind schema.GroupVersionKind, raw []byte) []byte {
	out = appendField(append(out, protobufMagic...), 1, typeMetaMessage(kind))
	return append(appendField(out, 2, raw), unknownTail...)
}

// listMessage returns a list in its envelope, in pieces around those of the items.
func listMessage(kind schema.GroupVersionKind, listMeta metav1.ListMeta, items [][]byte) ([][]byte, error) {
	metadata, err := listMeta.Marshal()
	if err != nil {
		return nil, err
	}
	size := fieldSize(len(metadata))
	for _, item := range items {
		size += fieldSize(len(item))
	}
	head := appendField(append([]byte(nil), protobufMagic...), 1, typeMetaMessage(kind))
	head = appendField(appendFieldHead(head, 2, size), 1, metadata)
	pieces := append(make([][]byte, 0, 2*len(items)+2), head)
	for _, item := range items {
		pieces = append(pieces, appendFieldHead(nil, 2, len(item)), item)
	}
	return append(pieces, unknownTail), nil
}

// frameLengthBytes is the size of a frame's length.
const frameLengthBytes = 4

// appendWatchFrame appends the frame of one watch event around an object in its envelope.
func appendWatchFrame(out []byte, eventType string, object []byte) []byte {
	extension := fieldSize(len(object))
	size := fieldSize(len(eventType)) + fieldSize(extension)
	out = binary.BigEndian.AppendUint32(out, uint32(size))
	out = appendField(out, 1, []byte(eventType))
	return appendField(appendFieldHead(out, 2, extension), 1, object)
}
