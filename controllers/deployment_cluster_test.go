package controllers

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func setImage(image string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = image }
}

func TestDeploymentRollsOutAndBack(t *testing.T) {
	c := startCluster(t)
	c.kubelet()
	d := testDeployment("web", 4, "good:1")
	d.Spec.RevisionHistoryLimit = ptr.To(int32(1))
	c.createDeployment(d)
	first := c.rolledOut("web")
	require.Equal(t, "1", first.Annotations[revisionAnnotation])
	require.Equal(t, reasonComplete, condition(&first.Status, appsv1.DeploymentProgressing).Reason)
	require.Equal(t, corev1.ConditionTrue, condition(&first.Status, appsv1.DeploymentAvailable).Status)

	for i := 2; i <= 3; i++ {
		c.changeDeployment("web", setImage(fmt.Sprintf("good:%d", i)))
		require.Equal(t, fmt.Sprint(i), c.rolledOut("web").Annotations[revisionAnnotation])
	}
	c.eventually("history of one", func() (bool, string) { // revision 1 is beyond the limit
		sets := c.replicaSets("app=web")
		return len(sets) == 2, fmt.Sprint(len(sets))
	})
	// A rollback is the template of an old revision: its ReplicaSet is used again, under a new number.
	before := c.replicaSets("app=web")
	c.changeDeployment("web", setImage("good:2"))
	require.Equal(t, "4", c.rolledOut("web").Annotations[revisionAnnotation])
	after := c.replicaSets("app=web")
	require.ElementsMatch(t, []any{before[0].UID, before[1].UID}, []any{after[0].UID, after[1].UID})
	for _, rs := range after {
		if rs.Annotations[revisionAnnotation] == "4" {
			require.Equal(t, "2", rs.Annotations[revisionHistoryAnnotation])
		}
	}
}

func TestDeploymentStopsAtTheFloorWhenTheNewImageIsBroken(t *testing.T) {
	c := startCluster(t)
	c.kubelet()
	c.createDeployment(testDeployment("web", 10, "good:1"))
	c.rolledOut("web")
	c.changeDeployment("web", setImage("bad:1"))
	c.eventually("8 old and 5 new", func() (bool, string) {
		s := c.deployment("web").Status
		return s.AvailableReplicas == 8 && s.Replicas == 13 && s.UpdatedReplicas == 5, fmt.Sprintf("%+v", s)
	})
	// Scaled in this state, both ReplicaSets keep their share: 13 become 10+3 of 20+5.
	c.changeDeployment("web", func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To(int32(20)) })
	c.eventually("25 pods in proportion", func() (bool, string) {
		sizes := map[string]int32{}
		for _, rs := range c.replicaSets("app=web") {
			sizes[rs.Spec.Template.Spec.Containers[0].Image] = *rs.Spec.Replicas
		}
		return sizes["good:1"] == 15 && sizes["bad:1"] == 10, fmt.Sprint(sizes)
	})
}

func TestDeploymentRecreate(t *testing.T) {
	c := startCluster(t)
	c.kubelet()
	d := testDeployment("web", 2, "good:1")
	d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
	c.createDeployment(d)
	c.rolledOut("web")
	// An old pod that does not go holds up the new ones.
	held := c.pods("app=web")[0]
	held.Finalizers = []string{"test.kontiki/hold"}
	_, err := c.CoreV1().Pods(c.namespace).Update(t.Context(), &held, metav1.UpdateOptions{})
	require.NoError(t, err)
	c.changeDeployment("web", setImage("good:2"))
	c.eventually("one pod left", func() (bool, string) {
		pods := c.pods("app=web")
		return len(pods) == 1 && pods[0].DeletionTimestamp != nil, fmt.Sprint(len(pods))
	})
	require.Len(t, c.replicaSets("app=web"), 1)
	_, err = c.CoreV1().Pods(c.namespace).Patch(t.Context(), held.Name, "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	c.rolledOut("web")
}

// CT-08: the old ReplicaSet of the same name is still there when the new Deployment wants to create its own.
func TestDeploymentDeletedAndCreatedAtOnce(t *testing.T) {
	c := startCluster(t)
	c.kubelet()
	for i := range 10 {
		c.createDeployment(testDeployment("web", 2, fmt.Sprintf("good:%d", i%2)))
		if i < 9 {
			require.NoError(t, c.AppsV1().Deployments(c.namespace).Delete(t.Context(), "web", metav1.DeleteOptions{}))
		}
	}
	d := c.rolledOut("web")
	c.eventually("nothing of the former ones left", func() (bool, string) {
		sets, pods := c.replicaSets("app=web"), c.pods("app=web")
		return len(sets) == 1 && len(pods) == 2 && metav1.IsControlledBy(&sets[0], d), fmt.Sprintf("%d ReplicaSets, %d pods", len(sets), len(pods))
	})
}

func TestReplicaSetNeverMakesTooManyPods(t *testing.T) {
	c := startCluster(t)
	seen := c.kubelet()
	c.createDeployment(testDeployment("web", 60, "good:1"))
	c.rolledOut("web")
	require.EqualValues(t, 60, seen.Load(), "pods ever created")
	c.changeDeployment("web", func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To(int32(20)) })
	c.rolledOut("web")
	require.Len(t, c.pods("app=web"), 20)
	require.EqualValues(t, 60, seen.Load(), "too many were deleted and made again")
}

// A server that restarts in the middle breaks every watch and connection. Nothing is made twice because of it.
func TestControllersSurviveARestartOfTheServer(t *testing.T) {
	c := startCluster(t)
	c.kubelet()
	c.createDeployment(testDeployment("web", 40, "good:1"))
	c.eventually("a rollout under way", func() (bool, string) {
		n := len(c.pods("app=web"))
		return n > 0, fmt.Sprint(n)
	})
	c.Restart()
	c.rolledOut("web")
	require.Len(t, c.pods("app=web"), 40)
	require.Len(t, c.replicaSets("app=web"), 1)
	c.changeDeployment("web", setImage("good:2"))
	c.rolledOut("web")
	require.Len(t, c.pods("app=web"), 40)
}
