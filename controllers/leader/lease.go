package leader

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// leaseTerm tells one term of a holder from another: he writes the same acquireTime with every renewal.
type leaseTerm struct {
	holder   string
	acquired time.Time
}

func termOf(lease *coordinationv1.Lease) leaseTerm {
	t := leaseTerm{holder: ptr.Deref(lease.Spec.HolderIdentity, "")}
	if lease.Spec.AcquireTime != nil {
		t.acquired = lease.Spec.AcquireTime.Time
	}
	return t
}

func (t leaseTerm) is(other leaseTerm) bool {
	return t.holder == other.holder && t.acquired.Equal(other.acquired)
}

// valid is how long a Lease is valid after its renewal: what its holder says, who may be of another version.
func valid(lease *coordinationv1.Lease) time.Duration {
	return time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
}

// taken is the Lease as its new holder writes it.
func (e *Elector) taken(lease *coordinationv1.Lease, now time.Time) *coordinationv1.Lease {
	next := lease.DeepCopy()
	if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); holder != e.config.Identity {
		next.Spec.LeaseTransitions = ptr.To(ptr.Deref(lease.Spec.LeaseTransitions, 0) + 1)
	}
	next.Spec.AcquireTime = stamp(now)
	return e.renewed(next, now)
}

// renewed is the Lease as its holder writes it again.
func (e *Elector) renewed(lease *coordinationv1.Lease, now time.Time) *coordinationv1.Lease {
	next := lease.DeepCopy()
	next.Spec.HolderIdentity = &e.config.Identity
	next.Spec.LeaseDurationSeconds = ptr.To(int32(e.config.Duration / time.Second))
	next.Spec.RenewTime = stamp(now)
	return next
}

// givenBack is the Lease without a holder, as client-go's leader election leaves it.
func givenBack(lease *coordinationv1.Lease, now time.Time) *coordinationv1.Lease {
	next := lease.DeepCopy()
	next.Spec.HolderIdentity, next.Spec.LeaseDurationSeconds = nil, ptr.To[int32](1)
	next.Spec.RenewTime, next.Spec.AcquireTime = stamp(now), stamp(now)
	return next
}

// stamp is a time as the Lease keeps it, in microseconds and without the monotonic clock.
func stamp(t time.Time) *metav1.MicroTime {
	return &metav1.MicroTime{Time: t.Truncate(time.Microsecond)}
}

func (e *Elector) empty() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: e.config.Name}}
}
