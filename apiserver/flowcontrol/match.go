package flowcontrol

import (
	"slices"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
)

// Request is what flow schemas look at.
type Request struct {
	User   string
	Groups []string
	Verb   string
	// Path is set for requests that are for no resource.
	Path string
	// Group, Resource ("pods" or "pods/status") and Namespace are set for requests for resources; Namespace is
	// empty for those that are for none.
	Group, Resource, Namespace string
}

// matches says whether one of the schema's rules fits the request: a subject of the rule, and a rule for
// resources or other paths.
func matches(spec *flowcontrolv1.FlowSchemaSpec, r *Request) bool {
	return slices.ContainsFunc(spec.Rules, func(rule flowcontrolv1.PolicyRulesWithSubjects) bool {
		return slices.ContainsFunc(rule.Subjects, r.isBy) && r.isFor(&rule)
	})
}

func (r *Request) isFor(rule *flowcontrolv1.PolicyRulesWithSubjects) bool {
	if r.Path != "" {
		return slices.ContainsFunc(rule.NonResourceRules, r.isForPath)
	}
	return slices.ContainsFunc(rule.ResourceRules, r.isForResource)
}

func (r *Request) isBy(subject flowcontrolv1.Subject) bool {
	switch {
	case subject.User != nil:
		return subject.User.Name == flowcontrolv1.NameAll || subject.User.Name == r.User
	case subject.Group != nil:
		return subject.Group.Name == flowcontrolv1.NameAll || slices.Contains(r.Groups, subject.Group.Name)
	case subject.ServiceAccount != nil:
		account, ok := strings.CutPrefix(r.User, "system:serviceaccount:"+subject.ServiceAccount.Namespace+":")
		return ok && (subject.ServiceAccount.Name == flowcontrolv1.NameAll || subject.ServiceAccount.Name == account)
	}
	return false
}

func (r *Request) isForResource(rule flowcontrolv1.ResourcePolicyRule) bool {
	if !oneOf(rule.Verbs, r.Verb) || !oneOf(rule.APIGroups, r.Group) || !oneOf(rule.Resources, r.Resource) {
		return false
	}
	if r.Namespace == "" {
		return rule.ClusterScope
	}
	return oneOf(rule.Namespaces, r.Namespace)
}

func (r *Request) isForPath(rule flowcontrolv1.NonResourcePolicyRule) bool {
	return oneOf(rule.Verbs, r.Verb) && slices.ContainsFunc(rule.NonResourceURLs, func(url string) bool {
		below, wild := strings.CutSuffix(url, "*")
		return url == r.Path || wild && strings.HasPrefix(r.Path, below)
	})
}

// oneOf says whether list names the value, or all values.
func oneOf(list []string, value string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, value)
}

// flow is what tells the flows of a schema apart: "" if they are all one.
func flow(spec *flowcontrolv1.FlowSchemaSpec, r *Request) string {
	if spec.DistinguisherMethod == nil {
		return ""
	}
	switch spec.DistinguisherMethod.Type {
	case flowcontrolv1.FlowDistinguisherMethodByUserType:
		return r.User
	case flowcontrolv1.FlowDistinguisherMethodByNamespaceType:
		return r.Namespace
	}
	return ""
}
