package storage

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"kontiki/apiserver/registry"
	"kontiki/apiserver/storage/encryption"
	"kontiki/watch"
)

// protobufMagic begins every protobuf value in the store (and on the wire), as Kubernetes has it.
// What follows is a runtime.Unknown:
//
//	k8s\x00 | 1: TypeMeta{1: apiVersion, 2: kind} | 2: raw, the object itself | 3, 4: encodings, empty
var protobufMagic = []byte("k8s\x00")

// protobufObject is what the types of k8s.io/api implement.
type protobufObject interface {
	runtime.Object
	runtime.ProtobufMarshaller
	Reset()
	Unmarshal(data []byte) error
}

// codec turns objects of a row into stored bytes and back. It is the watch.Codec of the row's cache.
type codec struct {
	row    *registry.Resource
	hub    *registry.Resource  // the row that objects are stored under; row itself for most
	atRest encryption.Resource // what is done to the bytes on their way into the store and back
	memos  *watch.Memos
}

// Memos implements watch.Codec.
func (c codec) Memos() *watch.Memos { return c.memos }

// value returns what is stored under key for obj, in place of current, which is nil for a new object. An object that has not changed
// keeps its bytes, unless they are to be encrypted otherwise: encrypting it again would make others.
func (c codec) value(key string, obj runtime.Object, current *watch.Object) ([]byte, error) {
	plain, err := c.Encode(obj)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", key, err)
	}
	if current != nil {
		before, stale, err := c.atRest.Open(key, current.Value())
		if err == nil && !stale && bytes.Equal(plain, before) {
			return current.Value(), nil
		}
	}
	return c.atRest.Seal(key, plain)
}

// Encode returns the bytes of obj before they are encrypted. It is of the row's version and is the caller's own: its
// resourceVersion is removed, since that is the revision under which the bytes will be stored.
// Equal objects give equal bytes.
func (c codec) Encode(obj runtime.Object) ([]byte, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	accessor.SetResourceVersion("")
	accessor.SetSelfLink("")
	if c.row.ToHub != nil {
		if obj, err = c.row.ToHub(obj); err != nil {
			return nil, fmt.Errorf("convert to %s: %w", c.hub.GroupVersionKind(), err)
		}
	}
	obj.GetObjectKind().SetGroupVersionKind(c.hub.GroupVersionKind())
	if p, ok := obj.(protobufObject); ok {
		return encodeProtobuf(p)
	}
	return encodeJSON(obj)
}

func encodeProtobuf(obj protobufObject) ([]byte, error) {
	apiVersion, kind := obj.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}}
	size := uint64(obj.Size())
	// The object's own tag and length need up to 11 bytes more than the envelope without it.
	data := make([]byte, len(protobufMagic)+envelope.Size()+11+int(size))
	copy(data, protobufMagic)
	n, err := envelope.NestedMarshalTo(data[len(protobufMagic):], obj, size)
	if err != nil {
		return nil, err
	}
	return data[:len(protobufMagic)+n], nil
}

// encodeJSON sorts the keys of maps, so equal objects give equal bytes.
func encodeJSON(obj runtime.Object) ([]byte, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return json.Marshal(u.Object)
	}
	return json.Marshal(obj)
}

// Decode implements watch.Codec: it returns an object of the row's version, with defaults.
func (c codec) Decode(key string, value []byte, revision int64) (runtime.Object, error) {
	plain, _, err := c.atRest.Open(key, value)
	if err != nil {
		return nil, err
	}
	obj, err := c.decodeHub(plain)
	if err != nil {
		return nil, err
	}
	if c.row.FromHub != nil {
		if obj, err = c.row.FromHub(obj); err != nil {
			return nil, fmt.Errorf("convert from %s: %w", c.hub.GroupVersionKind(), err)
		}
	}
	return c.finish(obj, revision)
}

// finish makes of an object of the row's version what is handed out.
func (c codec) finish(obj runtime.Object, revision int64) (runtime.Object, error) {
	if c.row.Strategy.Default != nil && !c.row.Strategy.DefaultedByHub {
		c.row.Strategy.Default(obj)
	}
	obj.GetObjectKind().SetGroupVersionKind(c.row.GroupVersionKind())
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	accessor.SetResourceVersion(formatRevision(revision))
	return obj, nil
}

// decodeHub decodes into the stored version. Built-in objects are read from JSON too, since etcd
// tools for Kubernetes may have written them so.
func (c codec) decodeHub(value []byte) (runtime.Object, error) {
	obj := c.hub.New()
	if raw, ok := bytes.CutPrefix(value, protobufMagic); ok {
		return obj, c.decodeProtobuf(raw, obj)
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return obj, json.Unmarshal(value, &u.Object)
	}
	return obj, json.Unmarshal(value, obj)
}

// errNotProtobuf: a value in the protobuf envelope under the key of a custom resource.
var errNotProtobuf = errors.New("this kind has no protobuf encoding")

func (c codec) decodeProtobuf(data []byte, into runtime.Object) error {
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(data); err != nil {
		return err
	}
	want := c.hub.GroupVersionKind()
	if have := envelope.GroupVersionKind(); have != want {
		return fmt.Errorf("stored as %s, not as %s", have, want)
	}
	obj, ok := into.(protobufObject)
	if !ok {
		return errNotProtobuf
	}
	obj.Reset()
	return obj.Unmarshal(envelope.Raw)
}

// Fields implements watch.Codec.
func (c codec) Fields(obj runtime.Object) fields.Set {
	set := fields.Set{}
	if c.row.Fields != nil {
		for field, value := range c.row.Fields(obj) {
			set[field] = value
		}
	}
	if accessor, err := meta.Accessor(obj); err == nil {
		c.setNames(set, accessor)
	}
	return set
}

func (c codec) setNames(set fields.Set, obj metav1.Object) {
	set["metadata.name"] = obj.GetName()
	if c.row.Namespaced {
		set["metadata.namespace"] = obj.GetNamespace()
	}
}

// formatRevision is a resourceVersion; "" for 0.
func formatRevision(revision int64) string {
	if revision == 0 {
		return ""
	}
	return strconv.FormatInt(revision, 10)
}
