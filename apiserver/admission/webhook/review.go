package webhook

import (
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"kontiki/apiserver/admission"
	"kontiki/apiserver/admission/dynamic"
)

// reviewKind is what travels both ways; v1beta1 has the same fields.
func reviewKind(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: admissionv1.GroupName, Version: version, Kind: "AdmissionReview"}
}

// newReview is the question to a hook, and the id that its answer has to have.
func newReview(version string, r *admission.Request, match dynamic.Match, view *dynamic.View) (types.UID, []byte, error) {
	uid := types.UID(uuid.NewString())
	requestKind, requestResource := metav1.GroupVersionKind(r.Kind), metav1.GroupVersionResource(r.Resource)
	review := admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{
		UID:  uid,
		Kind: metav1.GroupVersionKind(match.Kind), Resource: metav1.GroupVersionResource(match.Resource), SubResource: r.Subresource,
		RequestKind: &requestKind, RequestResource: &requestResource, RequestSubResource: r.Subresource,
		Name: r.Name, Namespace: r.Namespace, Operation: admissionv1.Operation(r.Operation),
		UserInfo: r.User, DryRun: &r.DryRun,
		Object: raw(view.VersionedObject.Object()), OldObject: raw(view.VersionedOldObject.Object()), Options: raw(r.Options),
	}}
	review.SetGroupVersionKind(reviewKind(version))
	body, err := json.Marshal(review)
	return uid, body, err
}

// raw is an object, or none, as a field.
func raw(obj runtime.Object) runtime.RawExtension { return runtime.RawExtension{Object: obj} }

// readReview is the answer to the question of that id. Version v1beta1 was never checked, so that its hooks may leave out
// what those of v1 must say.
func readReview(version string, uid types.UID, mutating bool, body []byte) (*admissionv1.AdmissionResponse, error) {
	var review admissionv1.AdmissionReview
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &review); err != nil {
		return nil, fmt.Errorf("couldn't get version/kind; json parse error: %w", err)
	}
	answer := review.Response
	if answer == nil {
		return nil, fmt.Errorf("webhook response was absent")
	}
	if version == "v1beta1" {
		if !mutating {
			answer.Patch = nil
		} else if len(answer.Patch) > 0 {
			jsonPatch := admissionv1.PatchTypeJSONPatch
			answer.PatchType = &jsonPatch
		}
		return answer, nil
	}
	if answer.UID != uid {
		return nil, fmt.Errorf("expected response.uid=%q, got %q", uid, answer.UID)
	}
	if want := reviewKind(version); review.GroupVersionKind() != want {
		return nil, fmt.Errorf("expected webhook response of %v, got %v", want, review.GroupVersionKind())
	}
	return answer, checkPatch(answer, mutating)
}

// checkPatch: a mutating hook names the type of its patch, a validating one has none.
func checkPatch(answer *admissionv1.AdmissionResponse, mutating bool) error {
	switch {
	case !mutating && len(answer.Patch) > 0:
		return fmt.Errorf("validating webhook may not return response.patch")
	case !mutating && answer.PatchType != nil:
		return fmt.Errorf("validating webhook may not return response.patchType")
	case len(answer.Patch) > 0 && answer.PatchType == nil:
		return fmt.Errorf("webhook returned response.patch but not response.patchType")
	case len(answer.Patch) == 0 && answer.PatchType != nil:
		return fmt.Errorf("webhook returned response.patchType but not response.patch")
	case answer.PatchType != nil && *answer.PatchType == "":
		return fmt.Errorf("webhook returned invalid response.patchType of %q", *answer.PatchType)
	}
	return nil
}
