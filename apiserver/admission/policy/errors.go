package policy

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kontiki/apiserver/admission"
)

// forbidden refuses a request with a reason of the policy's.
func forbidden(r *admission.Request, message string, reason metav1.StatusReason) *apierrors.StatusError {
	name := r.Name
	if name == "" {
		name = "Unknown"
	}
	refusal := apierrors.NewForbidden(r.Resource.GroupResource(), name, errors.New(message))
	if reason != "" {
		refusal.ErrStatus.Reason = reason
	}
	return refusal
}

// byValidation is the refusal of a validating policy.
func byValidation(r *admission.Request, d denial) error {
	message := fmt.Sprintf("ValidatingAdmissionPolicy '%s' denied request: %s", d.policy, d.message)
	if d.binding != "" {
		message = fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: %s", d.policy, d.binding, d.message)
	}
	if d.reason == "" {
		d.reason = metav1.StatusReasonInvalid
	}
	refusal := forbidden(r, message, d.reason)
	refusal.ErrStatus.Code = codeOf(d.reason)
	refusal.ErrStatus.Details.Causes = append(refusal.ErrStatus.Details.Causes, metav1.StatusCause{Message: message})
	return refusal
}

// codeOf is the HTTP status of a reason that a policy may give.
func codeOf(reason metav1.StatusReason) int32 {
	switch reason {
	case metav1.StatusReasonForbidden:
		return http.StatusForbidden
	case metav1.StatusReasonUnauthorized:
		return http.StatusUnauthorized
	case metav1.StatusReasonRequestEntityTooLarge:
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusUnprocessableEntity
}

// fault is a mutating policy that failed.
type fault struct {
	policy, binding string
	err             error
	reason          metav1.StatusReason
}

func (f fault) message() string {
	if f.binding == "" {
		return fmt.Sprintf("policy %q denied request: %v", f.policy, f.err)
	}
	return fmt.Sprintf("policy '%s' with binding '%s' denied request: %v", f.policy, f.binding, f.err)
}

// byMutation is the refusal because mutating policies failed: in the words of the first, the others as causes.
func byMutation(r *admission.Request, faults []fault) error {
	refusal := forbidden(r, "admission request denied by policy", faults[0].reason)
	refusal.ErrStatus.Message = faults[0].message()
	for _, f := range faults {
		refusal.ErrStatus.Details.Causes = append(refusal.ErrStatus.Details.Causes, metav1.StatusCause{Message: f.message()})
	}
	return refusal
}
