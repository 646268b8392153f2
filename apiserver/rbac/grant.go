package rbac

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// ErrEscalation is what errors of MayGrant and MayAggregate match.
var ErrEscalation = errors.New("attempt to grant what one does not have")

// Everything returns the rules that allow all there is.
func Everything() []rbacv1.PolicyRule {
	all := []string{"*"}
	return []rbacv1.PolicyRule{{Verbs: all, APIGroups: all, Resources: all}, {Verbs: all, NonResourceURLs: all}}
}

// MayGrant is nil if the user has all the rules in the namespace (everywhere, if it is empty); else the error lists
// those that are lacking.
func (p *Policy) MayGrant(user User, namespace string, rules []rbacv1.PolicyRule) error {
	ok, lacking := validation.Covers(p.RulesFor(user, namespace), rules)
	if ok {
		return nil
	}
	return &escalation{user, compact(lacking)}
}

// MayAggregate is nil if the user may write a cluster role that takes its rules from others: only who may do
// everything, since nobody knows what will be labelled next.
func (p *Policy) MayAggregate(user User) error {
	if p.MayGrant(user, "", Everything()) != nil {
		return fmt.Errorf("%w: must have cluster-admin privileges to use the aggregationRule", ErrEscalation)
	}
	return nil
}

type escalation struct {
	user    User
	lacking []rbacv1.PolicyRule
}

func (e *escalation) Unwrap() error { return ErrEscalation }

func (e *escalation) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "user %q (groups=%q) is attempting to grant RBAC permissions not currently held:", e.user.Name, e.user.Groups)
	for i := range e.lacking {
		b.WriteString("\n" + describe(&e.lacking[i]))
	}
	return b.String()
}

// compact puts rules that differ only in the verb together, so that a person can read the list.
func compact(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, rule := range rules {
		same := slices.IndexFunc(out, func(o rbacv1.PolicyRule) bool {
			return slices.Equal(o.APIGroups, rule.APIGroups) && slices.Equal(o.Resources, rule.Resources) &&
				slices.Equal(o.ResourceNames, rule.ResourceNames) && slices.Equal(o.NonResourceURLs, rule.NonResourceURLs)
		})
		if same < 0 {
			out = append(out, *rule.DeepCopy())
			continue
		}
		for _, verb := range rule.Verbs {
			if !slices.Contains(out[same].Verbs, verb) {
				out[same].Verbs = append(out[same].Verbs, verb)
			}
		}
	}
	for i := range out {
		slices.Sort(out[i].Verbs)
	}
	slices.SortFunc(out, func(a, b rbacv1.PolicyRule) int { return strings.Compare(describe(&a), describe(&b)) })
	return out
}

func describe(r *rbacv1.PolicyRule) string {
	var parts []string
	for _, part := range []struct {
		name   string
		values []string
	}{{"APIGroups", r.APIGroups}, {"Resources", r.Resources}, {"ResourceNames", r.ResourceNames}, {"NonResourceURLs", r.NonResourceURLs}, {"Verbs", r.Verbs}} {
		if len(part.values) > 0 {
			quoted := make([]string, len(part.values))
			for i, v := range part.values {
				quoted[i] = fmt.Sprintf("%q", v)
			}
			parts = append(parts, part.name+":["+strings.Join(quoted, ", ")+"]")
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
