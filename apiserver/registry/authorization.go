package registry

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// authorizationRows are questions about what somebody may do. Not yet: field and label selectors of an
// action, which no authorizer here looks at.
func authorizationRows() []*Resource {
	return []*Resource{localSubjectAccessReviews(), selfSubjectAccessReviews(), selfSubjectRulesReviews(), subjectAccessReviews()}
}

func subjectAccessReviews() *Resource {
	r := newUnlisted[authorizationv1.SubjectAccessReview](authorizationv1.SchemeGroupVersion, "subjectaccessreviews", "SubjectAccessReview")
	r.Strategy.Validate = validator(func(review *authorizationv1.SubjectAccessReview) field.ErrorList {
		return append(validateAction(&review.Spec), validateSubject(&review.Spec)...)
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
		switch a := review.Spec.ResourceAttributes; {
		case a != nil && a.Namespace != review.Namespace:
			faults = append(faults, field.Invalid(specPath.Child("resourceAttributes", "namespace"), a.Namespace, "must match metadata.namespace"))
		case review.Spec.NonResourceAttributes != nil:
			faults = append(faults, field.Invalid(specPath.Child("nonResourceAttributes"), review.Spec.NonResourceAttributes, "disallowed on this kind of request"))
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
		return validateAction(action(ctx, &obj.(*authorizationv1.SelfSubjectAccessReview).Spec))
	}
	return questions(r, false, question(func(ctx context.Context, server Server, review *authorizationv1.SelfSubjectAccessReview) {
		review.Status = server.Authorize(ctx, *action(ctx, &review.Spec))
	}))
}

// selfSubjectRulesReviews: kubectl auth can-i --list.
func selfSubjectRulesReviews() *Resource {
	r := newUnlisted[authorizationv1.SelfSubjectRulesReview](authorizationv1.SchemeGroupVersion, "selfsubjectrulesreviews", "SelfSubjectRulesReview")
	r.Strategy.Validate = validator(func(review *authorizationv1.SelfSubjectRulesReview) field.ErrorList {
		return required(specPath.Child("namespace"), review.Spec.Namespace)
	})
	return questions(r, false, question(func(ctx context.Context, server Server, review *authorizationv1.SelfSubjectRulesReview) {
		review.Status = server.Rules(ctx, AskerOf(ctx), review.Spec.Namespace)
	}))
}

// validateAction: it is about a resource or about a path.
func validateAction(s *authorizationv1.SubjectAccessReviewSpec) field.ErrorList {
	switch {
	case s.ResourceAttributes != nil && s.NonResourceAttributes != nil:
		return field.ErrorList{field.Invalid(specPath.Child("nonResourceAttributes"), s.NonResourceAttributes, "cannot be specified in combination with resourceAttributes")}
	case s.ResourceAttributes == nil && s.NonResourceAttributes == nil:
		return field.ErrorList{field.Invalid(specPath.Child("resourceAttributes"), s.NonResourceAttributes, "exactly one of nonResourceAttributes or resourceAttributes must be specified")}
	}
	return nil
}

func validateSubject(s *authorizationv1.SubjectAccessReviewSpec) field.ErrorList {
	if s.User == "" && len(s.Groups) == 0 {
		return field.ErrorList{field.Invalid(specPath.Child("user"), s.User, "at least one of user or group must be specified")}
	}
	return nil
}
