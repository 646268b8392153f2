package registry

import (
	"context"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func serviceAccounts() *Resource {
	r := newRow[corev1.ServiceAccount, corev1.ServiceAccountList](corev1.SchemeGroupVersion, "serviceaccounts", "ServiceAccount")
	r.ShortNames = []string{"sa"}
	r.Strategy = Strategy{NoGeneration: true, ReturnDeleted: true}
	r.Columns, r.Row = serviceAccountColumns, cells(serviceAccountRow)
	r.Subresources = []Subresource{{
		Name: "token", Verbs: []string{"create"},
		Kind:   authenticationv1.SchemeGroupVersion.WithKind("TokenRequest"),
		New:    func() runtime.Object { return &authenticationv1.TokenRequest{} },
		Answer: issueToken,
	}}
	return r
}

// How long a token may be asked to last, and lasts when nothing is said.
const (
	minTokenSeconds     = 10 * 60
	maxTokenSeconds     = 1 << 32
	defaultTokenSeconds = 60 * 60
)

// issueToken is POST on serviceaccounts/NAME/token: kubectl create token, and the kubelet for a pod's volume.
func issueToken(ctx context.Context, server Server, parent, body runtime.Object) (runtime.Object, error) {
	account, request := parent.(*corev1.ServiceAccount), body.(*authenticationv1.TokenRequest)
	setPointer(&request.Spec.ExpirationSeconds, defaultTokenSeconds)
	var faults field.ErrorList
	switch seconds, at := *request.Spec.ExpirationSeconds, specPath.Child("expirationSeconds"); {
	case seconds < minTokenSeconds:
		faults = append(faults, field.Invalid(at, seconds, "may not specify a duration less than 10 minutes"))
	case seconds > maxTokenSeconds:
		faults = append(faults, field.Invalid(at, seconds, "may not specify a duration larger than 2^32 seconds"))
	}
	if len(faults) > 0 {
		return nil, apierrors.NewInvalid(authenticationv1.SchemeGroupVersion.WithKind("TokenRequest").GroupKind(), request.Name, faults)
	}
	request.Status = authenticationv1.TokenRequestStatus{}
	err := server.IssueToken(ctx, account, request, time.Duration(*request.Spec.ExpirationSeconds)*time.Second)
	return request, err
}
