package nodeagent

import (
	"context"
	"encoding/json"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A node that has not renewed its Lease for leaseSeconds is taken for dead by the node lifecycle controller.
const (
	leasePeriod  = 10 * time.Second
	leaseSeconds = int32(40)
)

// renewLease writes the node's sign of life when it is due.
func (n *nodeReporter) renewLease(ctx context.Context) error {
	if time.Since(n.leased) < leasePeriod {
		return nil
	}
	leases := n.a.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	name := n.a.cfg.NodeName
	seconds, now := leaseSeconds, metav1.NewMicroTime(time.Now())
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: corev1.NamespaceNodeLease,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: name, UID: n.node.UID}},
	}}
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &name, &seconds, &now
	// A patch, because announcers write there too (package announce).
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": lease.OwnerReferences}, "spec": lease.Spec})
	if err != nil {
		return err
	}
	_, err = leases.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, lease, metav1.CreateOptions{})
	}
	if err == nil {
		n.leased = time.Now()
	}
	return err
}
