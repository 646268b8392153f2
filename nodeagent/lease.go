package nodeagent

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	lease, err := leases.Get(ctx, name, metav1.GetOptions{})
	absent := apierrors.IsNotFound(err)
	if err != nil && !absent {
		return err
	}
	if absent {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: corev1.NamespaceNodeLease}}
	}
	seconds, now := leaseSeconds, metav1.NewMicroTime(time.Now())
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &name, &seconds, &now
	lease.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: name, UID: n.node.UID}}
	if absent {
		_, err = leases.Create(ctx, lease, metav1.CreateOptions{})
	} else {
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if err == nil {
		n.leased = time.Now()
	}
	return err
}
