package registry

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// authorizationRows are questions about what somebody may do. No authorizer here looks at the field and label selectors
// of an action.
func authorizationRows() []*Resource {
	return []*Resource{localSubjectAccessReviews(), selfSubjectAccessReviews(), selfSubjectRulesReviews(), subjectAccessReviews()}
}

func subjectAccessReviews() *Resource {
	r := newUnlisted[authorizationv1.SubjectAccessReview](authorizationv1.SchemeGroupVersion, "subjectaccessreviews", "SubjectAccessReview")
	r.Strategy.Validate = validator(func(review *authorizationv1.SubjectAccessReview) field.ErrorList {
		faults := append(validateAction(&review.Spec), validateSubject(&review.Spec)...)
		return append(faults, bareReview(review.ObjectMeta, false)...)
	})
	return questions(r, false, question(func(ctx context.Context, server Server, review *authorizationv1.SubjectAccessReview) {
		review.Status = server.Authorize(ctx, review.Spec)
	}))
}

// localSubjectAccessReviews are the same within one namespace, so that the right to ask can be given there.
func localSubjectAccessReviews() *Resource {
	r := newUnlisted[authorizationv1.LocalSubjectAccessReview](authorizationv1.SchemeGroupVersion, "localsubjectaccessreviews", "LocalSubjectAccessReview")
	r.Strategy.Validate = validator(func(review *authorizationv1.LocalSubjectAccessReview) field.ErrorList {
		faults := append(validateAction(&review.Spec), validateSubject(&review.Spec)...)
		faults = append(faults, bareReview(review.ObjectMeta, true)...)
		switch a := review.Spec.ResourceAttributes; {
		case a != nil && a.Namespace != review.Namespace:
			faults = append(faults, field.Invalid(specPath.Child("resourceAttributes", "namespace"), a.Namespace, "must match metadata.namespace"))
		case review.Spec.NonResourceAttributes != nil:
			faults = append(faults, field.Invalid(specPath.Child("nonResourceAttributes"), shown(review.Spec.NonResourceAttributes), "disallowed on this kind of request"))
		}
		return faults
	})
	return questions(r, true, question(func(ctx context.Context, server Server, review *authorizationv1.LocalSubjectAccessReview) {
		review.Status = server.Authorize(ctx, review.Spec)
	}))
}

// selfSubjectAccessReviews: kubectl auth can-i.
func selfSubjectAccessReviews() *Resource {
	r := newUnlisted[authorizationv1.SelfSubjectAccessReview](authorizationv1.SchemeGroupVersion, "selfsubjectaccessreviews", "SelfSubjectAccessReview")
	action := func(ctx context.Context, s *authorizationv1.SelfSubjectAccessReviewSpec) *authorizationv1.SubjectAccessReviewSpec {
		user := AskerOf(ctx)
		extra := map[string]authorizationv1.ExtraValue{}
		for key, values := range user.Extra {
			extra[key] = authorizationv1.ExtraValue(values)
		}
		return &authorizationv1.SubjectAccessReviewSpec{
			ResourceAttributes: s.ResourceAttributes, NonResourceAttributes: s.NonResourceAttributes,
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		}
	}
	r.Strategy.Validate = func(ctx context.Context, obj runtime.Object) field.ErrorList {
		review := obj.(*authorizationv1.SelfSubjectAccessReview)
		return append(validateAction(action(ctx, &review.Spec)), bareReview(review.ObjectMeta, false)...)
	}
	return questions(r, false, question(func(ctx context.Context, server Server, review *authorizationv1.SelfSubjectAccessReview) {
		review.Status = server.Authorize(ctx, *action(ctx, &review.Spec))
	}))
}

// selfSubjectRulesReviews: kubectl auth can-i --list.
func selfSubjectRulesReviews() *Resource {
	r := newUnlisted[authorizationv1.SelfSubjectRulesReview](authorizationv1.SchemeGroupVersion, "selfsubjectrulesreviews", "SelfSubjectRulesReview")
	return questions(r, false, func(ctx context.Context, server Server, obj runtime.Object) (runtime.Object, error) {
		namespace := obj.(*authorizationv1.SelfSubjectRulesReview).Spec.Namespace
		if namespace == "" {
			return nil, apierrors.NewBadRequest("no namespace on request")
		}
		return &authorizationv1.SelfSubjectRulesReview{Status: server.Rules(ctx, AskerOf(ctx), namespace)}, nil
	})
}

// validateAction: it is about a resource or about a path, and a selector of objects is said in one of two ways.
func validateAction(s *authorizationv1.SubjectAccessReviewSpec) field.ErrorList {
	var faults field.ErrorList
	if (s.ResourceAttributes != nil) == (s.NonResourceAttributes != nil) {
		var path any
		if s.NonResourceAttributes != nil {
			path = shown(s.NonResourceAttributes)
		}
		faults = append(faults, field.Invalid(specPath, path, "exactly one of nonResourceAttributes or resourceAttributes must be specified").WithOrigin("union"))
	}
	if s.ResourceAttributes == nil {
		return faults
	}
	at := specPath.Child("resourceAttributes")
	if f := s.ResourceAttributes.FieldSelector; f != nil {
		at := at.Child("fieldSelector")
		faults = append(faults, oneSelector(at, f.RawSelector, len(f.Requirements))...)
		for i, requirement := range f.Requirements {
			faults = append(faults, metavalidation.ValidateFieldSelectorRequirement(requirement,
				metavalidation.FieldSelectorValidationOptions{AllowUnknownOperatorInRequirement: true}, at.Child("requirements").Index(i))...)
		}
	}
	if l := s.ResourceAttributes.LabelSelector; l != nil {
		at := at.Child("labelSelector")
		faults = append(faults, oneSelector(at, l.RawSelector, len(l.Requirements))...)
		for i, requirement := range l.Requirements { // clients may be newer than this server
			faults = append(faults, metavalidation.ValidateLabelSelectorRequirement(requirement,
				metavalidation.LabelSelectorValidationOptions{AllowUnknownOperatorInRequirement: true}, at.Child("requirements").Index(i))...)
		}
	}
	return faults
}

func oneSelector(path *field.Path, raw string, requirements int) field.ErrorList {
	switch {
	case raw != "" && requirements > 0:
		return field.ErrorList{field.Invalid(path.Child("rawSelector"), raw, "may not specified at the same time as requirements")}
	case raw == "" && requirements == 0:
		return field.ErrorList{field.Required(path.Child("requirements"), fmt.Sprintf("when %s is specified, requirements or rawSelector is required", path))}
	}
	return nil
}

// bareReview: a review has no name, nor anything else in its metadata but, if it is of one, its namespace.
func bareReview(meta metav1.ObjectMeta, namespaced bool) field.ErrorList {
	given, message := meta, "must be empty"
	if namespaced {
		meta.Namespace, message = "", "must be empty except for namespace"
	}
	meta.ManagedFields = nil
	if apiequality.Semantic.DeepEqual(meta, metav1.ObjectMeta{}) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata"), given, message)}
}

func validateSubject(s *authorizationv1.SubjectAccessReviewSpec) field.ErrorList {
	if s.User == "" && len(s.Groups) == 0 {
		return field.ErrorList{field.Invalid(specPath.Child("user"), s.User, "at least one of user or group must be specified")}
	}
	return nil
}
