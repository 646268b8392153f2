package admission

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The order is kube-apiserver's: later plugins rely on what earlier ones have filled in.
func TestOrderAndDefaults(t *testing.T) {
	c, err := New(&cluster{}, Config{Last: []Plugin{{Name: "Mine", Impl: nil}}})
	require.NoError(t, err)
	require.Equal(t, []string{
		"NamespaceLifecycle", "LimitRanger", "ServiceAccount", "NodeRestriction", "TaintNodesByCondition", "AlwaysPullImages", "PodSecurity",
		"Priority", "DefaultTolerationSeconds", "ExtendedResourceToleration", "DefaultStorageClass", "StorageObjectInUseProtection",
		"OwnerReferencesPermissionEnforcement", "PersistentVolumeClaimResize", "RuntimeClass", "CertificateApproval", "CertificateSigning",
		"ClusterTrustBundleAttest", "CertificateSubjectRestriction", "DefaultIngressClass", "DenyServiceExternalIPs", "PodTopologyLabels",
		"PodResizeValidator", "ResourceQuota", "Mine",
	}, c.names)

	off, err := New(&cluster{}, Config{})
	require.NoError(t, err)
	on, err := New(&cluster{}, Config{Enabled: []string{"AlwaysPullImages", "DenyServiceExternalIPs"}, Disabled: []string{"ResourceQuota"}})
	require.NoError(t, err)
	require.Len(t, on.mutators, len(off.mutators)+1)
	require.Len(t, on.validators, len(off.validators)+1)
	require.Len(t, off.chargers, 1)
	require.Empty(t, on.chargers)
}

func TestWrongNames(t *testing.T) {
	for message, config := range map[string]Config{
		`there is no admission plugin "Nonsense", only NamespaceLifecycle, LimitRanger`: {Disabled: []string{"Nonsense"}},
		`there is no admission plugin "resourcequota"`:                                  {Enabled: []string{"resourcequota"}},
		`admission plugin "Priority" is enabled and disabled`:                           {Enabled: []string{"Priority"}, Disabled: []string{"Priority"}},
		`admission plugin "Priority" takes no configuration, only PodSecurity`:          {Plugins: map[string][]byte{"Priority": nil}},
		`admission configuration: PodSecurity: `:                                        {Plugins: map[string][]byte{"PodSecurity": []byte(`{"kind":"Nothing"}`)}},
	} {
		_, err := New(&cluster{}, config)
		require.ErrorContains(t, err, message)
	}
}
