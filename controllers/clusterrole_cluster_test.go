package controllers

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// admin has what edit has, which has what view has; a role that is labelled later joins them.
func TestAggregatedClusterRoles(t *testing.T) {
	c := startCluster(t)
	roles := c.RbacV1().ClusterRoles()
	widgets := rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{"example.com"}, Resources: []string{"widgets"}}
	_, err := roles.Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets", Labels: map[string]string{"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
		Rules:      []rbacv1.PolicyRule{widgets},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	for name, least := range map[string]int{"view": 13, "edit": 28, "admin": 30} {
		c.eventually(name+" has its rules", func() (bool, string) {
			role, err := roles.Get(t.Context(), name, metav1.GetOptions{})
			require.NoError(t, err)
			found := false
			for _, rule := range role.Rules {
				found = found || rule.Resources[0] == "widgets"
			}
			return found && len(role.Rules) >= least, fmt.Sprint(role.Rules)
		})
	}
}
