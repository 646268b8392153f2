package dynamic

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"kontiki/apiserver/admission"
)

// Exempt tells the requests that no webhook and no policy sees: those on webhooks and policies themselves, or nobody could
// repair one that refuses everything, and the reviews of tokens and access, which webhooks may need to do their work
// (as in Kubernetes from 1.37 on).
func Exempt(r *admission.Request) bool {
	switch r.Resource.Group {
	case admissionv1.GroupName, authenticationv1.GroupName, authorizationv1.GroupName:
		return true
	}
	return false
}
