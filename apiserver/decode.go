package apiserver

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"kontiki/apiserver/registry"
)

// defaultMaxBodyBytes is Kubernetes' limit on a request body.
const defaultMaxBodyBytes = 3 << 20

// readBody reads the whole body, which serveResource has bounded. Compressed bodies are refused: they are
// the cheapest way to make a server run out of memory, and no Kubernetes client sends them.
func readBody(r *http.Request) ([]byte, error) {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, statusError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
			fmt.Sprintf("Content-Encoding %q is not supported for request bodies", encoding))
	}
	body, err := io.ReadAll(r.Body)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", tooLarge.Limit))
	case err != nil:
		return nil, badRequest("error reading the request body: %v", err)
	}
	return body, nil
}

// serializerFor picks the serializer for a Content-Type; no header means JSON. binary says whether
// the objects have a protobuf form.
func serializerFor(codecs serializer.CodecFactory, contentType string, binary bool) (runtime.SerializerInfo, error) {
	if contentType == "" {
		contentType = runtime.ContentTypeJSON
	}
	if mediaType, _, err := mime.ParseMediaType(contentType); err == nil {
		info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), mediaType)
		if ok && (binary || info.MediaType != runtime.ContentTypeProtobuf) {
			return info, nil
		}
	}
	return runtime.SerializerInfo{}, errUnsupportedMediaType(mediaTypes())
}

// decodeObject reads an object of kind from body into a fresh object, which newObject makes.
// level is the fieldValidation parameter: what to do about unknown and duplicate fields. coerce, if it is not nil, finds
// more of them, and drops them, where there is no Go type to do so.
func (s *Server) decodeObject(ctx context.Context, info runtime.SerializerInfo, body []byte, kind schema.GroupVersionKind, newObject func() runtime.Object, level string, coerce func(runtime.Object) ([]error, error)) (runtime.Object, error) {
	decoder := runtime.Decoder(info.StrictSerializer)
	if level == metav1.FieldValidationIgnore {
		decoder = info.Serializer
	}
	into := newObject()
	obj, found, err := decoder.Decode(body, &kind, into)
	var faults []error
	if strict, ok := runtime.AsStrictDecodingError(err); ok && obj != nil {
		faults, err = strict.Errors(), nil
	}
	if err == nil && coerce != nil && found.GroupVersion() == kind.GroupVersion() {
		var unknown []error
		unknown, err = coerce(obj)
		faults = append(faults, unknown...)
	}
	switch {
	case err != nil:
	case len(faults) == 0 || level == metav1.FieldValidationIgnore:
	case level == metav1.FieldValidationStrict:
		err = runtime.NewStrictDecodingError(faults)
	default:
		warnFaults(ctx, faults)
	}
	if err != nil {
		return nil, undecodable(kind, found, err, body)
	}
	if found.GroupVersion() != kind.GroupVersion() {
		return nil, badRequest("the API version in the data (%s) does not match the expected API version (%s)", found.GroupVersion(), kind.GroupVersion())
	}
	if found.Kind != kind.Kind || reflect.TypeOf(obj) != reflect.TypeOf(into) {
		return nil, badRequest("%s in version %q cannot be handled as a %s", found.Kind, found.Version, kind.Kind)
	}
	return obj, nil
}

// undecodable words a decoding failure as Kubernetes does.
func undecodable(want schema.GroupVersionKind, found *schema.GroupVersionKind, err error, body []byte) error {
	if found != nil && found.Kind != "" {
		return badRequest("%s in version %q cannot be handled as a %s: %v", found.Kind, found.Version, want.Kind, err)
	}
	return badRequest("the object provided is unrecognized (must be of type %s): %v (%s)", want.Kind, err, quoted(want, summary(body)))
}

// summary shows the start of a body in an error message: what may be JSON as it is, anything else in hexadecimal.
func summary(body []byte) string {
	const shown = 30
	if len(body) == 0 {
		return "<empty>"
	}
	start, more := body, ""
	if len(body) > shown {
		start, more = body[:shown], " ..."
	}
	if body[0] == '{' {
		return string(start) + more
	}
	return hex.EncodeToString(start) + more
}

// decodeBody reads the request's object and fills in its defaults.
func (s *Server) decodeBody(r *http.Request, t *target, kind schema.GroupVersionKind, newObject func() runtime.Object, level string) (runtime.Object, error) {
	info, err := serializerFor(s.codecs, r.Header.Get("Content-Type"), t.binary())
	if err != nil {
		return nil, err
	}
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	var coerce func(runtime.Object) ([]error, error)
	if kind == t.resource.GroupVersionKind() && t.resource.Strategy.Coerce != nil {
		coerce = func(obj runtime.Object) ([]error, error) { return unknownFields(t.resource, obj) }
	}
	obj, err := s.decodeObject(r.Context(), info, body, kind, newObject, level, coerce)
	if err != nil {
		return nil, err
	}
	auditBody(r.Context(), obj, kind)
	if kind == t.resource.GroupVersionKind() {
		t.resource.Default(obj)
	}
	return obj, nil
}

// unknownFields drops what the kind of obj does not have, and tells what that was.
func unknownFields(r *registry.Resource, obj runtime.Object) ([]error, error) {
	if r.Strategy.Coerce == nil {
		return nil, nil
	}
	paths, err := r.Strategy.Coerce(obj)
	var faults []error
	for _, path := range paths {
		faults = append(faults, fmt.Errorf("unknown field %q", path))
	}
	return faults, err
}

// binary says whether the target's objects have a protobuf form: all built-in ones have.
func (t *target) binary() bool {
	_, ok := t.resource.New().(interface{ Unmarshal([]byte) error })
	return ok
}
