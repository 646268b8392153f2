package controllers

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

var (
	testSets = resource{gvr: appsv1.SchemeGroupVersion.WithResource("replicasets"), kind: "ReplicaSet", namespaced: true}
	testPods = resource{gvr: corev1.SchemeGroupVersion.WithResource("pods"), kind: "Pod", namespaced: true}
)

func graphSet(uid string, change ...func(*graphNode)) *graphNode {
	n := &graphNode{uid: types.UID(uid), resource: testSets, apiVersion: "apps/v1", namespace: "ns", name: uid}
	for _, c := range change {
		c(n)
	}
	return n
}

func ownedPod(uid string, owner *graphNode) *graphNode {
	return &graphNode{uid: types.UID(uid), resource: testPods, apiVersion: "v1", namespace: "ns", name: uid, owners: []metav1.OwnerReference{{
		APIVersion: owner.apiVersion, Kind: owner.resource.kind, Name: owner.name, UID: owner.uid, BlockOwnerDeletion: ptr.To(true),
	}}}
}

func deletedWith(finalizer string) func(*graphNode) {
	return func(n *graphNode) { n.deleting, n.finalizers = true, []string{finalizer} }
}

func TestGraphLooksOnlyWhereItMayMatter(t *testing.T) {
	g := newOwnerGraph()
	rs := graphSet("r")
	require.Equal(t, []types.UID{"early"}, g.observe(ownedPod("early", rs)), "its owner is not known")
	require.Empty(t, g.observe(rs))
	require.Empty(t, g.observe(ownedPod("p", rs)), "all is well")
	require.Equal(t, []types.UID{"p"}, g.observe(func() *graphNode { n := ownedPod("p", rs); n.namespace = "other"; return n }()), "an owner in another namespace is none")
	g.observe(ownedPod("p", rs))
	require.ElementsMatch(t, []types.UID{"early", "p"}, g.forget("r"))
	require.Empty(t, g.forget("r"), "forgotten")
}

func TestGraphForeground(t *testing.T) {
	g := newOwnerGraph()
	rs := graphSet("r")
	g.observe(rs)
	g.observe(ownedPod("p", rs))
	require.Equal(t, []types.UID{"r"}, g.observe(graphSet("r", deletedWith(metav1.FinalizerDeleteDependents))))
	require.Contains(t, g.observe(ownedPod("p", rs)), types.UID("p"), "its owner waits for it")
	require.True(t, blocks(g.dependentsOf("r")[0], "r"))
	free := ownedPod("p", rs)
	free.owners = nil
	require.Equal(t, []types.UID{"r"}, g.observe(free), "the reference is gone: the owner may go")
	require.Empty(t, g.dependentsOf("r"))
	g.observe(ownedPod("p", rs))
	require.Equal(t, []types.UID{"r"}, g.forget("p"))
}

func TestGraphForgetsResources(t *testing.T) {
	g := newOwnerGraph()
	rs := graphSet("r")
	g.observe(rs)
	g.observe(ownedPod("p", rs))
	require.Equal(t, []types.UID{"p"}, g.forgetResource(testSets.gvr))
	require.Nil(t, g.get("r"))
}
