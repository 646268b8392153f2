package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// maxJSONPatchOperations is Kubernetes' limit on the operations of one JSON patch.
const maxJSONPatchOperations = 10000

// maxPatchGrowthBytes bounds what the copy operations of one JSON patch may add: the size of the
// largest body. Without it, 25 copies of a list into itself are gigabytes (AP-20).
const maxPatchGrowthBytes = defaultMaxBodyBytes

// patchTypes are the media types of a patch of built-in kinds.
var patchTypes = []string{
	string(types.JSONPatchType), string(types.MergePatchType),
	string(types.StrategicMergePatchType), string(types.ApplyYAMLPatchType), string(types.ApplyCBORPatchType),
}

// patchTypes are those of the target. Strategic patches go by the struct tags of Go types, which custom resources have not; as
// in Kubernetes, their scales take none either.
func (t *target) patchTypes() []string {
	if t.resource.Model == nil {
		return patchTypes
	}
	return slices.DeleteFunc(slices.Clone(patchTypes), func(name string) bool { return name == string(types.StrategicMergePatchType) })
}

// servePatch is PATCH on an object, or on a subresource that is a part of it.
func (s *Server) servePatch(w http.ResponseWriter, r *http.Request, t *target) error {
	f, err := negotiate(r, t.verb, t.binary())
	if err != nil {
		return err
	}
	p, err := s.readPatch(r, t)
	if err != nil {
		return err
	}
	c := change{options: p.options}
	if p.kind == types.ApplyYAMLPatchType {
		c.allowMissing = t.sub == nil
		c.next = func(ctx context.Context, live runtime.Object) (runtime.Object, error) {
			return s.apply(ctx, t, p, live)
		}
	} else {
		c.next = func(ctx context.Context, live runtime.Object) (runtime.Object, error) {
			next, err := s.patched(ctx, t.resource.GroupVersionKind(), t.resource.New, p, live)
			if err != nil {
				return nil, err
			}
			faults, err := unknownFields(t.resource, next)
			if err != nil {
				return nil, invalidPatch(string(p.body), err.Error())
			}
			if err := p.judge(ctx, string(p.body), faults); err != nil {
				return nil, err
			}
			t.resource.Default(next)
			return s.track(t, live, next, p.options.manager)
		}
	}
	result, err := s.change(r.Context(), t, c)
	if err != nil {
		return err
	}
	return s.writeResult(w, r, t, f, codeOf(result), result.Object)
}

// A patch is a request's, read and checked as far as it can be without the object.
type patch struct {
	kind    types.PatchType
	body    []byte
	options writeOptions
}

func (s *Server) readPatch(r *http.Request, t *target) (patch, error) {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if accepted := t.patchTypes(); err != nil || !slices.Contains(accepted, mediaType) {
		if t.resource.Model != nil { // as in Kubernetes, which tells the clients of custom resources more
			return patch{}, errUnsupportedMediaType(accepted)
		}
		return patch{}, errUnsupportedPatch()
	}
	p := patch{kind: types.PatchType(mediaType)}
	cbor := p.kind == types.ApplyCBORPatchType
	if cbor {
		p.kind = types.ApplyYAMLPatchType
	}
	if p.options, err = patchOptions(r, p.kind); err != nil {
		return p, err
	}
	if p.body, err = readBody(r); err == nil && cbor {
		p.body, err = jsonOfCBOR(p.body)
	}
	auditPatch(r.Context(), p.body)
	return p, err
}

// patched applies a JSON, merge or strategic merge patch to live and decodes the result.
func (s *Server) patched(ctx context.Context, kind schema.GroupVersionKind, newObject func() runtime.Object, p patch, live runtime.Object) (runtime.Object, error) {
	live.GetObjectKind().SetGroupVersionKind(kind)
	if p.kind == types.StrategicMergePatchType {
		next, err := patchedStrategically(ctx, p, live, newObject())
		if err == nil {
			next.GetObjectKind().SetGroupVersionKind(kind) // not among what it changes, as in Kubernetes
		}
		return next, err
	}
	before, err := json.Marshal(live)
	if err != nil {
		return nil, err
	}
	var after []byte
	var faults []error
	if p.kind == types.JSONPatchType {
		after, faults, err = applyJSONPatch(p.body, before)
	} else {
		after, faults, err = applyMergePatch(p.body, before)
	}
	if err != nil {
		return nil, err
	}
	return decodePatched(ctx, kind, newObject, after, faults, p)
}

// decodePatched reads a patched object. faults are the unknown and duplicate fields of the patch itself.
func decodePatched(ctx context.Context, kind schema.GroupVersionKind, newObject func() runtime.Object, data []byte, faults []error, p patch) (runtime.Object, error) {
	next := newObject()
	unknown, err := kjson.UnmarshalStrict(data, next)
	if err != nil {
		return nil, invalidPatch(quoted(kind, string(data)), err.Error())
	}
	if err := p.judge(ctx, quoted(kind, string(data)), append(faults, unknown...)); err != nil {
		return nil, err
	}
	found := next.GetObjectKind().GroupVersionKind()
	if found != kind && !found.Empty() {
		return nil, invalidPatch(quoted(kind, string(data)), fmt.Sprintf("a patch cannot change kind or apiVersion: %v became %v", kind, found))
	}
	next.GetObjectKind().SetGroupVersionKind(kind)
	return next, nil
}

// judge does with unknown and duplicate fields what the client has asked for. shown is what an error shows of the patch.
func (p patch) judge(ctx context.Context, shown string, faults []error) error {
	switch level := p.options.validation; {
	case len(faults) == 0 || level == metav1.FieldValidationIgnore:
	case level == metav1.FieldValidationStrict:
		return invalidPatch(shown, runtime.NewStrictDecodingError(faults).Error())
	default:
		warnFaults(ctx, faults)
	}
	return nil
}

func invalidPatch(shown, reason string) error {
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), shown, reason)})
}

// jsonPatchOperation is RFC 6902's; only used to find unknown fields.
type jsonPatchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from"`
	Value any    `json:"value"`
}

func applyJSONPatch(body, before []byte) (after []byte, faults []error, err error) {
	if !json.Valid(body) {
		return nil, nil, errInvalidJSONPatch()
	}
	var operations []jsonPatchOperation
	if faults, err = kjson.UnmarshalStrict(body, &operations); err != nil {
		return nil, nil, badRequest("error decoding patch: %v", err)
	}
	for i := range faults {
		faults[i] = fmt.Errorf("json patch %w", faults[i])
	}
	if len(operations) > maxJSONPatchOperations {
		return nil, nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"The allowed maximum operations in a JSON patch is %d, got %d", maxJSONPatchOperations, len(operations)))
	}
	patch, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, nil, badRequest("error decoding patch: %v", err)
	}
	after, err = applyBounded(patch, before)
	return after, faults, err
}

// applyBounded applies the operations, in pieces that end with each copy, so that a patch that
// doubles its document again and again is stopped while it is still small.
func applyBounded(patch jsonpatch.Patch, doc []byte) ([]byte, error) {
	limit := len(doc) + maxPatchGrowthBytes
	for len(patch) > 0 {
		end := len(patch)
		for i, operation := range patch {
			if operation.Kind() == "copy" {
				end = i + 1
				break
			}
		}
		var err error
		if doc, err = patch[:end].Apply(doc); err != nil {
			return nil, errCannotApply(err.Error())
		}
		if len(doc) > limit {
			return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the patched object would be over %d bytes", limit))
		}
		patch = patch[end:]
	}
	return doc, nil
}

func applyMergePatch(body, before []byte) (after []byte, faults []error, err error) {
	if !json.Valid(body) {
		return nil, nil, errInvalidJSONPatch()
	}
	content := map[string]any{}
	if faults, err = kjson.UnmarshalStrict(body, &content); err != nil {
		return nil, nil, badRequest("error decoding patch: %v", err)
	}
	after, err = jsonpatch.MergePatch(before, body)
	if errors.Is(err, jsonpatch.ErrBadJSONPatch) {
		return nil, nil, badRequest("%v", err)
	}
	return after, faults, err
}
