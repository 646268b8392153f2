package controllers

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestAP42_CascadeModes: what becomes of a Deployment's ReplicaSet and pods, one of which somebody holds.
func TestAP42_CascadeModes(t *testing.T) {
	c := startCluster(t)
	c.kubelet()
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationOrphan, metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		t.Run(string(policy), func(t *testing.T) {
			name := map[metav1.DeletionPropagation]string{
				metav1.DeletePropagationOrphan: "orphan", metav1.DeletePropagationBackground: "back", metav1.DeletePropagationForeground: "fore",
			}[policy]
			c.createDeployment(testDeployment(name, 2, "app"))
			c.rolledOut(name)
			held := c.pods("app=" + name)[0].Name
			c.holdPod(held, `["test.kontiki/hold"]`)
			require.NoError(t, c.AppsV1().Deployments(c.namespace).Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &policy}))

			switch policy {
			case metav1.DeletePropagationOrphan:
				c.deploymentGoes(name)
				require.Empty(t, c.replicaSets("app=" + name)[0].OwnerReferences, "stripped before the owner goes")
				require.Len(t, c.pods("app="+name), 2)
			case metav1.DeletePropagationBackground:
				c.deploymentGoes(name)
				c.onlyHeld(name, 0)
				c.holdPod(held, `null`)
			case metav1.DeletePropagationForeground:
				c.onlyHeld(name, 1)
				for _, m := range []metav1.ObjectMeta{c.deployment(name).ObjectMeta, c.replicaSets("app=" + name)[0].ObjectMeta} {
					require.NotNil(t, m.DeletionTimestamp)
					require.Equal(t, []string{metav1.FinalizerDeleteDependents}, m.Finalizers)
				}
				c.holdPod(held, `null`)
				c.deploymentGoes(name)
				require.Empty(t, c.pods("app="+name))
				require.Empty(t, c.replicaSets("app="+name))
			}
		})
	}
}

func (c *cluster) holdPod(name, finalizers string) {
	c.t.Helper()
	_, err := c.CoreV1().Pods(c.namespace).Patch(c.t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":`+finalizers+`}}`), metav1.PatchOptions{})
	require.NoError(c.t, err)
}

func (c *cluster) deploymentGoes(name string) {
	c.t.Helper()
	c.eventually(name+" to go", func() (bool, string) {
		d, err := c.AppsV1().Deployments(c.namespace).Get(c.t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), fmt.Sprint(d.Finalizers, err)
	})
}

// onlyHeld waits until nothing is left but the held pod, which is being deleted, and so many ReplicaSets.
func (c *cluster) onlyHeld(name string, replicaSets int) {
	c.t.Helper()
	c.eventually("all but the held pod to go", func() (bool, string) {
		pods, sets := c.pods("app="+name), c.replicaSets("app="+name)
		return len(pods) == 1 && pods[0].DeletionTimestamp != nil && len(sets) == replicaSets, fmt.Sprint(len(pods), len(sets))
	})
}
