package customresources

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// failed words what went wrong as Kubernetes does.
func failed(objects []*unstructured.Unstructured, format string, args ...any) error {
	return fmt.Errorf("%w for %v %w", ErrConversion, objects[0].GroupVersionKind(), fmt.Errorf(format, args...))
}

func newReview(version string, uid types.UID, objects []*unstructured.Unstructured, to schema.GroupVersion) *apiextensionsv1.ConversionReview {
	out := &apiextensionsv1.ConversionReview{
		TypeMeta: metav1.TypeMeta{Kind: "ConversionReview", APIVersion: apiextensionsv1.GroupName + "/" + version},
		Request:  &apiextensionsv1.ConversionRequest{UID: uid, DesiredAPIVersion: to.String()},
	}
	for _, u := range objects {
		out.Request.Objects = append(out.Request.Objects, runtime.RawExtension{Object: u})
	}
	return out
}

// readReview takes the objects out of an answer. A webhook may change everything but what an object is and, of its
// metadata, all but labels and annotations: the rest of it is kept as it was.
func readReview(answer []byte, version string, uid types.UID, before []*unstructured.Unstructured, to schema.GroupVersion) ([]*unstructured.Unstructured, error) {
	var review apiextensionsv1.ConversionReview
	if err := json.Unmarshal(answer, &review); err != nil {
		return nil, failed(before, "failed: %w", err)
	}
	if err := checkReview(&review, version, uid); err != nil {
		return nil, failed(before, "failed: %w", err)
	}
	converted := review.Response.ConvertedObjects
	if len(converted) != len(before) {
		return nil, failed(before, "returned %d objects, expected %d", len(converted), len(before))
	}
	out := make([]*unstructured.Unstructured, 0, len(converted))
	for i, raw := range converted {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(raw.Raw); err != nil {
			return nil, failed(before, "returned invalid converted object at index %d: %w", i, err)
		}
		if err := sameObject(before[i], u, to); err != nil {
			return nil, failed(before, "returned invalid converted object at index %d: %w", i, err)
		}
		if err := restoreMetadata(before[i], u); err != nil {
			return nil, failed(before, "returned invalid metadata in object at index %d: %w", i, err)
		}
		out = append(out, u)
	}
	return out, nil
}

// checkReview judges all of an answer but the objects.
func checkReview(review *apiextensionsv1.ConversionReview, version string, uid types.UID) error {
	want := schema.GroupVersionKind{Group: apiextensionsv1.GroupName, Version: version, Kind: "ConversionReview"}
	response := review.Response
	switch {
	case review.GroupVersionKind() != want:
		return fmt.Errorf("expected webhook response of %s, got %s", want, review.GroupVersionKind())
	case response == nil:
		return fmt.Errorf("no response provided")
	case response.UID != uid:
		return fmt.Errorf("expected response.uid=%q, got %q", uid, response.UID)
	case response.Result.Status != metav1.StatusSuccess:
		return fmt.Errorf("%s", cmp.Or(response.Result.Message, fmt.Sprintf("response.result.status was '%s', not 'Success'", response.Result.Status)))
	}
	return nil
}

func sameObject(before, after *unstructured.Unstructured, to schema.GroupVersion) error {
	kind := after.GroupVersionKind()
	if kind.GroupVersion() != to {
		return fmt.Errorf("invalid groupVersion (expected %v, received %v)", to, kind.GroupVersion())
	}
	if want := before.GetKind(); kind.Kind != want {
		return fmt.Errorf("invalid kind (expected %v, received %v)", want, kind.Kind)
	}
	for _, part := range []struct{ name, want, got string }{
		{"name", before.GetName(), after.GetName()},
		{"namespace", before.GetNamespace(), after.GetNamespace()},
		{"UID", string(before.GetUID()), string(after.GetUID())},
	} {
		if part.want != part.got {
			return fmt.Errorf("must have the same %s: %v != %v", part.name, part.want, part.got)
		}
	}
	return nil
}

// restoreMetadata gives after the metadata of before, but for labels and annotations, which must be valid if they are new.
func restoreMetadata(before, after *unstructured.Unstructured) error {
	answered, ok := after.Object["metadata"].(map[string]any)
	if !ok {
		return fmt.Errorf("invalid metadata of type %T in converted object", after.Object["metadata"])
	}
	metadata, _, _ := unstructured.NestedMap(before.Object, "metadata") // a copy
	if metadata == nil {
		metadata = map[string]any{}
	}
	for name, judge := range map[string]func(map[string]string, *field.Path) field.ErrorList{
		"labels": metavalidation.ValidateLabels, "annotations": apivalidation.ValidateAnnotations,
	} {
		texts, found, err := unstructured.NestedStringMap(answered, name)
		if err != nil {
			return fmt.Errorf("metadata%w in converted object", err)
		}
		was, _, _ := unstructured.NestedStringMap(metadata, name)
		delete(metadata, name)
		if !found || answered[name] == nil {
			continue
		}
		if faults := judge(texts, field.NewPath("metadata", name)); len(faults) > 0 && !maps.Equal(was, texts) {
			return faults.ToAggregate()
		}
		metadata[name] = answered[name]
	}
	after.Object["metadata"] = metadata
	return nil
}
