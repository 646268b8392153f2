package podstate

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"kontiki/nodeagent/probe"
)

// TestEphemeralContainers: one starts beside whatever the pod does, once, and holds up nothing.
func TestEphemeralContainers(t *testing.T) {
	p := pod(corev1.RestartPolicyAlways, "setup|main")
	p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "look", Image: "i"}}}
	started := func(words string) (names []string) {
		for _, s := range Next(p, state(words), func(string) probe.Result { return probe.Result{Started: true, Ready: true} }, now).Start {
			names = append(names, s.Container.Name)
		}
		return names
	}
	require.Equal(t, []string{"look"}, started("setup:running"))
	require.Equal(t, []string{"look"}, started("setup:0 main:running"))
	require.Empty(t, started("setup:0 main:running look:running"))
	require.Empty(t, started("setup:0 main:running look:1@600"), "it is not started again")
	p.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: "look", ContainerID: "x://gone"}}
	require.Empty(t, started("setup:0 main:running"), "nor if the runtime has forgotten it")

	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	ended := Next(p, state("setup:0 main:0 look:running"), func(string) probe.Result { return probe.Result{} }, now)
	require.Len(t, ended.Kill, 1, "it ends with the pod")
	require.Equal(t, "look", ended.Kill[0].Container.Name)
}
