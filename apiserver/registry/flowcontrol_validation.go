package registry

import (
	"fmt"
	"slices"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateFlowSchema(f *flowcontrolv1.FlowSchema) field.ErrorList {
	s := &f.Spec
	var faults field.ErrorList
	precedence := specPath.Child("matchingPrecedence")
	if s.MatchingPrecedence <= 0 {
		faults = append(faults, field.Invalid(precedence, s.MatchingPrecedence, "must be a positive value"))
	}
	if s.MatchingPrecedence > flowcontrolv1.FlowSchemaMaxMatchingPrecedence {
		faults = append(faults, field.Invalid(precedence, s.MatchingPrecedence, fmt.Sprintf("must not be greater than %v", flowcontrolv1.FlowSchemaMaxMatchingPrecedence)))
	}
	if s.MatchingPrecedence == 1 && f.Name != flowcontrolv1.FlowSchemaNameExempt {
		faults = append(faults, field.Invalid(precedence, s.MatchingPrecedence, "only the schema named 'exempt' may have matchingPrecedence 1"))
	}
	if m := s.DistinguisherMethod; m != nil {
		kinds := []flowcontrolv1.FlowDistinguisherMethodType{flowcontrolv1.FlowDistinguisherMethodByNamespaceType, flowcontrolv1.FlowDistinguisherMethodByUserType}
		if !slices.Contains(kinds, m.Type) { // Kubernetes shows the method, not its type
			faults = append(faults, field.NotSupported(specPath.Child("distinguisherMethod", "type"), shown(m), kinds))
		}
	}
	level := specPath.Child("priorityLevelConfiguration", "name")
	if name := s.PriorityLevelConfiguration.Name; name == "" {
		faults = append(faults, field.Required(level, "must reference a priority level"))
	} else {
		faults = append(faults, dnsSubdomain(level, name)...)
	}
	for i := range s.Rules {
		faults = append(faults, flowRule(specPath.Child("rules").Index(i), &s.Rules[i])...)
	}
	return faults
}

func flowRule(path *field.Path, r *flowcontrolv1.PolicyRulesWithSubjects) field.ErrorList {
	var faults field.ErrorList
	if len(r.Subjects) == 0 {
		faults = append(faults, field.Required(path.Child("subjects"), "subjects must contain at least one value"))
	}
	for i := range r.Subjects {
		faults = append(faults, flowSubject(path.Child("subjects").Index(i), &r.Subjects[i])...)
	}
	if len(r.ResourceRules)+len(r.NonResourceRules) == 0 {
		faults = append(faults, field.Required(path, "at least one of resourceRules and nonResourceRules has to be non-empty"))
	}
	for i := range r.ResourceRules {
		faults = append(faults, flowResources(path.Child("resourceRules").Index(i), &r.ResourceRules[i])...)
	}
	for i := range r.NonResourceRules {
		faults = append(faults, flowPaths(path.Child("nonResourceRules").Index(i), &r.NonResourceRules[i])...)
	}
	return faults
}

// flowSubject has the one part that its kind names, and no other.
func flowSubject(path *field.Path, s *flowcontrolv1.Subject) field.ErrorList {
	kinds := []flowcontrolv1.SubjectKind{flowcontrolv1.SubjectKindGroup, flowcontrolv1.SubjectKindServiceAccount, flowcontrolv1.SubjectKindUser}
	if !slices.Contains(kinds, s.Kind) {
		return field.ErrorList{field.NotSupported(path.Child("kind"), s.Kind, kinds)}
	}
	var faults field.ErrorList
	for _, part := range []struct {
		kind  flowcontrolv1.SubjectKind
		child string
		has   bool
	}{
		{flowcontrolv1.SubjectKindServiceAccount, "serviceAccount", s.ServiceAccount != nil},
		{flowcontrolv1.SubjectKindUser, "user", s.User != nil},
		{flowcontrolv1.SubjectKindGroup, "group", s.Group != nil},
	} {
		switch at := path.Child(part.child); {
		case part.kind == s.Kind && !part.has:
			faults = append(faults, field.Required(at, fmt.Sprintf("%s is required when subject kind is '%s'", part.child, part.kind)))
		case part.kind != s.Kind && part.has:
			faults = append(faults, field.Forbidden(at, fmt.Sprintf("%s is forbidden when subject kind is not '%s'", part.child, part.kind)))
		}
	}
	switch {
	case s.Kind == flowcontrolv1.SubjectKindUser && s.User != nil:
		faults = append(faults, required(path.Child("user", "name"), s.User.Name)...)
	case s.Kind == flowcontrolv1.SubjectKindGroup && s.Group != nil:
		faults = append(faults, required(path.Child("group", "name"), s.Group.Name)...)
	case s.Kind == flowcontrolv1.SubjectKindServiceAccount && s.ServiceAccount != nil:
		at, a := path.Child("serviceAccount"), s.ServiceAccount
		if a.Name != flowcontrolv1.NameAll {
			faults = append(faults, required(at.Child("name"), a.Name)...)
			if a.Name != "" {
				faults = append(faults, invalid(at.Child("name"), a.Name, apivalidation.ValidateServiceAccountName(a.Name, false))...)
			}
		}
		if a.Namespace == "" {
			faults = append(faults, field.Required(at.Child("namespace"), "must specify namespace for service account"))
		} else {
			faults = append(faults, dnsLabel(at.Child("namespace"), a.Namespace)...)
		}
	}
	return faults
}

var flowVerbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"}

// flowVerbList: known verbs, or "*" alone.
func flowVerbList(path *field.Path, verbs []string) field.ErrorList {
	switch {
	case len(verbs) == 0:
		return field.ErrorList{field.Required(path, "verbs must contain at least one value")}
	case slices.Contains(verbs, "*"):
		return aloneStar(path, verbs, "verbs")
	case slices.ContainsFunc(verbs, func(v string) bool { return !slices.Contains(flowVerbs, v) }):
		return field.ErrorList{field.NotSupported(path, verbs, flowVerbs)}
	}
	return nil
}

func aloneStar(path *field.Path, list []string, what string) field.ErrorList {
	if len(list) > 1 && slices.Contains(list, "*") {
		return field.ErrorList{field.Invalid(path, list, "if '*' is present, must not specify other "+what)}
	}
	return nil
}

func flowResources(path *field.Path, r *flowcontrolv1.ResourcePolicyRule) field.ErrorList {
	faults := flowVerbList(path.Child("verbs"), r.Verbs)
	if len(r.APIGroups) == 0 {
		faults = append(faults, field.Required(path.Child("apiGroups"), "resource rules must supply at least one api group"))
	}
	faults = append(faults, aloneStar(path.Child("apiGroups"), r.APIGroups, "api groups")...)
	if len(r.Resources) == 0 {
		faults = append(faults, field.Required(path.Child("resources"), "resource rules must supply at least one resource"))
	}
	faults = append(faults, aloneStar(path.Child("resources"), r.Resources, "resources")...)
	namespaces := path.Child("namespaces")
	if len(r.Namespaces) == 0 && !r.ClusterScope {
		return append(faults, field.Required(namespaces, "resource rules that are not cluster scoped must supply at least one namespace"))
	}
	if slices.Contains(r.Namespaces, flowcontrolv1.NamespaceEvery) {
		return append(faults, aloneStar(namespaces, r.Namespaces, "namespaces")...)
	}
	for i, ns := range r.Namespaces {
		for _, m := range apivalidation.ValidateNamespaceName(ns, false) {
			faults = append(faults, field.Invalid(namespaces.Index(i), ns, "each member of this list must be '*' or a DNS-1123 label; "+m))
		}
	}
	return faults
}

func flowPaths(path *field.Path, r *flowcontrolv1.NonResourcePolicyRule) field.ErrorList {
	faults := flowVerbList(path.Child("verbs"), r.Verbs)
	urls := path.Child("nonResourceURLs")
	switch {
	case len(r.NonResourceURLs) == 0:
		return append(faults, field.Required(urls, "nonResourceURLs must contain at least one value"))
	case slices.Contains(r.NonResourceURLs, "*"):
		return append(faults, aloneStar(urls, r.NonResourceURLs, "non-resource URLs")...)
	}
	for i, u := range r.NonResourceURLs {
		at := urls.Index(i)
		star := strings.Index(u, "*")
		switch {
		case u == "":
			faults = append(faults, field.Invalid(at, u, "must not be empty"))
		case !strings.HasPrefix(u, "/"):
			faults = append(faults, field.Invalid(at, u, "must start with slash"))
		case strings.Contains(u, " "):
			faults = append(faults, field.Invalid(at, u, "must not contain white-space"))
		case strings.Contains(u, "//"):
			faults = append(faults, field.Invalid(at, u, "must not contain double slash"))
		case star >= 0 && !strings.HasSuffix(u, "/*"), star >= 0 && star != len(u)-1:
			faults = append(faults, field.Invalid(at, u, "wildcard can only do suffix matching"))
		}
	}
	return faults
}

func validatePriorityLevel(p *flowcontrolv1.PriorityLevelConfiguration) field.ErrorList {
	s := &p.Spec
	var faults field.ErrorList
	if (p.Name == flowcontrolv1.PriorityLevelConfigurationNameExempt) != (s.Type == flowcontrolv1.PriorityLevelEnablementExempt) {
		faults = append(faults, field.Invalid(specPath.Child("type"), s.Type, "must be 'Exempt' if and only if `name` is 'exempt'"))
	}
	switch s.Type {
	case flowcontrolv1.PriorityLevelEnablementExempt:
		if s.Limited != nil {
			faults = append(faults, field.Forbidden(specPath.Child("limited"), "must be nil if the type is not Limited"))
		}
	case flowcontrolv1.PriorityLevelEnablementLimited:
		if s.Exempt != nil {
			faults = append(faults, field.Forbidden(specPath.Child("exempt"), "must be nil if the type is Limited"))
		}
		if s.Limited == nil {
			faults = append(faults, field.Required(specPath.Child("limited"), "must not be empty when type is Limited"))
		} else {
			faults = append(faults, limitedLevel(specPath.Child("limited"), s.Limited)...)
		}
	default:
		faults = append(faults, oneOf(specPath.Child("type"), s.Type, flowcontrolv1.PriorityLevelEnablementExempt, flowcontrolv1.PriorityLevelEnablementLimited)...)
	}
	return faults
}

func limitedLevel(path *field.Path, l *flowcontrolv1.LimitedPriorityLevelConfiguration) field.ErrorList {
	var faults field.ErrorList
	if n := l.NominalConcurrencyShares; n != nil && *n < 0 {
		faults = append(faults, field.Invalid(path.Child("nominalConcurrencyShares"), *n, "must be a non-negative integer"))
	}
	if n := l.LendablePercent; n != nil && (*n < 0 || *n > 100) {
		faults = append(faults, field.Invalid(path.Child("lendablePercent"), *n, "must be between 0 and 100, inclusive"))
	}
	if n := l.BorrowingLimitPercent; n != nil && *n < 0 {
		faults = append(faults, field.Invalid(path.Child("borrowingLimitPercent"), *n, "if specified, must be a non-negative integer"))
	}
	response, r := path.Child("limitResponse"), &l.LimitResponse
	switch r.Type {
	case flowcontrolv1.LimitResponseTypeReject:
		if r.Queuing != nil {
			faults = append(faults, field.Forbidden(response.Child("queuing"), "must be nil if limited.limitResponse.type is not Limited"))
		}
	case flowcontrolv1.LimitResponseTypeQueue:
		if r.Queuing == nil {
			faults = append(faults, field.Required(response.Child("queuing"), "must not be empty if limited.limitResponse.type is Limited"))
		} else {
			faults = append(faults, queuing(response.Child("queuing"), r.Queuing)...)
		}
	default:
		faults = append(faults, oneOf(response.Child("type"), r.Type, flowcontrolv1.LimitResponseTypeQueue, flowcontrolv1.LimitResponseTypeReject)...)
	}
	return faults
}

// queuing: a hand of queues is dealt from one 60-bit hash.
func queuing(path *field.Path, q *flowcontrolv1.QueuingConfiguration) field.ErrorList {
	var faults field.ErrorList
	positive := func(child string, n int32) {
		if n <= 0 {
			faults = append(faults, field.Invalid(path.Child(child), n, "must be positive"))
		}
	}
	positive("queueLengthLimit", q.QueueLengthLimit)
	positive("queues", q.Queues)
	if q.Queues > 10_000_000 {
		faults = append(faults, field.Invalid(path.Child("queues"), q.Queues, "must not be greater than 10000000"))
	}
	positive("handSize", q.HandSize)
	if q.HandSize > q.Queues {
		faults = append(faults, field.Invalid(path.Child("handSize"), q.HandSize, fmt.Sprintf("should not be greater than queues (%d)", q.Queues)))
		return faults
	}
	hands := 1.0
	for i := range q.HandSize {
		if hands *= float64(q.Queues - i); hands > 1<<60 {
			return append(faults, field.Invalid(path.Child("handSize"), q.HandSize, fmt.Sprintf("required entropy bits of deckSize %d and handSize %d should not be greater than 60", q.Queues, q.HandSize)))
		}
	}
	return faults
}
