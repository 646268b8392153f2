package watch

import (
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// Codec is what a cache must know of its objects.
type Codec interface {
	// Decode turns the bytes stored under key into an object with its resourceVersion set to revision, or empty for
	// revision 0 (an object that a dry run did not store). It is
	// deterministic: the same bytes give the same object, or an error, each time.
	Decode(key string, value []byte, revision int64) (runtime.Object, error)
	// Fields returns the attributes that field selectors can ask for.
	Fields(obj runtime.Object) fields.Set
	// Memos bounds what large objects remember; nil does not.
	Memos() *Memos
}

// maxEncodings bounds the encodings that an Object remembers; further media types are encoded each time.
const maxEncodings = 8

// Object is one version of one object, shared by everybody who reads it.
//
// The stored bytes are all it always has. The decoded object, its labels and fields, and its
// encodings are computed when first asked for and remembered until a sweep finds that nobody has
// asked since the sweep before, or until there are too many large ones (memos.go).
type Object struct {
	Key            string // in the store: "/registry/pods/default/web-0"
	Revision       int64  // of the write that made this version: its resourceVersion
	CreateRevision int64  // of the write that created the object; 0 if not known

	value []byte
	codec Codec
	used  atomic.Bool

	mu   sync.Mutex // guards memo; held while decoding and encoding, so that each happens once
	memo memo
}

// memo is what can be computed again from the stored bytes.
type memo struct {
	object    runtime.Object
	labels    labels.Set
	fields    fields.Set
	encodings []encoding
}

type encoding struct {
	mediaType string
	data      []byte
}

// NewObject returns the version of an object that value, at revision, stands for.
func NewObject(key string, value []byte, revision, createRevision int64, codec Codec) *Object {
	return &Object{Key: key, Revision: revision, CreateRevision: createRevision, value: value, codec: codec}
}

// Value returns the bytes in the store. They are shared: read-only.
func (o *Object) Value() []byte { return o.value }

// Get returns the decoded object, which is shared: DeepCopy it before changing anything. The error
// is a *CorruptError.
func (o *Object) Get() (runtime.Object, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.get()
}

func (o *Object) get() (runtime.Object, error) {
	o.used.Store(true)
	if o.memo.object != nil {
		return o.memo.object, nil
	}
	obj, err := o.codec.Decode(o.Key, o.value, o.Revision)
	if err != nil {
		return nil, &CorruptError{Key: o.Key, Revision: o.Revision, Err: err}
	}
	o.memo.object = obj
	o.codec.Memos().note(o)
	return obj, nil
}

// Decoded says whether the decoded object is at hand.
func (o *Object) Decoded() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.memo.object != nil
}

// Adopt remembers a decoded object that somebody has made together with others, where that is cheaper. It must be what
// the codec would make.
func (o *Object) Adopt(obj runtime.Object) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.memo.object == nil {
		o.used.Store(true)
		o.memo.object = obj
		o.codec.Memos().note(o)
	}
}

// Peek is Get without remembering the result: for housekeeping that should not keep objects in memory.
func (o *Object) Peek() (runtime.Object, error) {
	o.mu.Lock()
	obj := o.memo.object
	o.mu.Unlock()
	if obj != nil {
		return obj, nil
	}
	return o.codec.Decode(o.Key, o.value, o.Revision)
}

// Object is Get for objects that are known to decode. All that apiserver/storage and a Watcher hand
// out have been decoded once, and decoding is deterministic; so a failure here is a broken invariant.
func (o *Object) Object() runtime.Object {
	obj, err := o.Get()
	if err != nil {
		panic(err)
	}
	return obj
}

// Encoded returns the object's encoding in a media type, calling encode only if nobody has asked for
// it lately. mediaType is any name for what encode makes; equal names must mean equal encodings. The
// result is shared: read-only.
func (o *Object) Encoded(mediaType string, encode func(runtime.Object) ([]byte, error)) ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.used.Store(true)
	for _, e := range o.memo.encodings {
		if e.mediaType == mediaType {
			return e.data, nil
		}
	}
	obj, err := o.get()
	if err != nil {
		return nil, err
	}
	data, err := encode(obj)
	if err == nil && len(o.memo.encodings) < maxEncodings {
		o.memo.encodings = append(o.memo.encodings, encoding{mediaType, data})
	}
	return data, err
}

// Attributes returns what selectors look at: the object's labels and its selectable fields.
func (o *Object) Attributes() (labels.Set, fields.Set, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	obj, err := o.get()
	if err != nil {
		return nil, nil, err
	}
	if o.memo.fields == nil {
		accessor, err := meta.Accessor(obj)
		if err != nil {
			return nil, nil, &CorruptError{Key: o.Key, Revision: o.Revision, Err: err}
		}
		o.memo.labels, o.memo.fields = accessor.GetLabels(), o.codec.Fields(obj)
	}
	return o.memo.labels, o.memo.fields, nil
}

// At returns the same state under another revision: what a DELETED event shows.
func (o *Object) At(revision int64) *Object {
	return NewObject(o.Key, o.value, revision, o.CreateRevision, o.codec)
}
