package controllers

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The status of a policy says where its expressions do not fit the types that its rules name, through variables too.
func TestPolicyTypes(t *testing.T) {
	c := startCluster(t)
	policies := c.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	check := func(name string, spec admissionv1.ValidatingAdmissionPolicySpec) []admissionv1.ExpressionWarning {
		spec.MatchConstraints = &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
			},
		}}}
		_, err := policies.Create(t.Context(), &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
		require.NoError(t, err)
		var policy *admissionv1.ValidatingAdmissionPolicy
		c.eventually("status of "+name, func() (bool, string) {
			policy, err = policies.Get(t.Context(), name, metav1.GetOptions{})
			require.NoError(t, err)
			return policy.Status.ObservedGeneration == 1, fmt.Sprint(policy.Status)
		})
		if policy.Status.TypeChecking == nil {
			return nil
		}
		return policy.Status.TypeChecking.ExpressionWarnings
	}
	require.Empty(t, check("fine", admissionv1.ValidatingAdmissionPolicySpec{
		Variables:   []admissionv1.Variable{{Name: "n", Expression: "object.spec.replicas"}},
		Validations: []admissionv1.Validation{{Expression: "variables.n > 1", MessageExpression: "string(object.metadata.name)"}},
	}))
	warnings := check("typo", admissionv1.ValidatingAdmissionPolicySpec{
		Variables:   []admissionv1.Variable{{Name: "n", Expression: "object.spec.replicas"}},
		Validations: []admissionv1.Validation{{Expression: "object.spec.replicaz > 1", MessageExpression: "string(variables.n.nothing)"}},
	})
	require.Len(t, warnings, 2)
	require.Equal(t, "spec.validations[0].expression", warnings[0].FieldRef)
	require.Contains(t, warnings[0].Warning, "apps/v1, Kind=Deployment: ")
	require.Contains(t, warnings[0].Warning, "undefined field 'replicaz'")
	require.Equal(t, "spec.validations[0].messageExpression", warnings[1].FieldRef)
	require.Contains(t, warnings[1].Warning, "does not support field selection")
}
