package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"
)

// patchedStrategically merges a strategic merge patch into live by the rules in the struct tags of its type, and puts
// the result into next, an empty object of the same type. It works on maps and never on the JSON of the whole, as Kubernetes does.
func patchedStrategically(ctx context.Context, p patch, live, next runtime.Object) (runtime.Object, error) {
	if !json.Valid(p.body) {
		return nil, errInvalidJSONPatch()
	}
	content := map[string]any{}
	faults, err := kjson.UnmarshalStrict(p.body, &content)
	if err != nil {
		return nil, badRequest("%v", err)
	}
	original, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return nil, err
	}
	merged, err := strategicpatch.StrategicMergeMapPatch(original, content, next)
	if err != nil {
		return nil, strategicError(err)
	}
	shown := quoted(live.GetObjectKind().GroupVersionKind(), fmt.Sprintf("%+v", content))
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(merged, next, true); err != nil {
		unknown, ok := runtime.AsStrictDecodingError(err)
		if !ok {
			return nil, invalidPatch(shown, err.Error())
		}
		faults = append(faults, unknown.Errors()...)
	}
	return next, p.judge(ctx, shown, faults)
}

// malformed are the errors about a patch that is wrong in itself, whatever the object.
var malformed = []error{mergepatch.ErrBadJSONDoc, mergepatch.ErrBadPatchFormatForPrimitiveList, mergepatch.ErrBadPatchFormatForRetainKeys,
	mergepatch.ErrBadPatchFormatForSetElementOrderList, mergepatch.ErrUnsupportedStrategicMergePatchFormat}

// strategicError tells a patch that is wrong in itself (400) from one that does not fit (422).
func strategicError(err error) error {
	for _, m := range malformed {
		if errors.Is(err, m) {
			return badRequest("%v", err)
		}
	}
	return errCannotApply(err.Error())
}
