package controllers

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// rollingLimits resolves maxSurge and maxUnavailable to pods. Percentages of the desired replicas round up for surge and
// down for unavailable, so a rollout never goes below what was promised. If both come out as zero (1 % of 3, and 0) the
// rollout could not move at all, so one pod may then be unavailable. See Deployment.spec.strategy.rollingUpdate.
func rollingLimits(replicas int32, strategy *appsv1.RollingUpdateDeployment) (surge, unavailable int32) {
	if strategy == nil {
		return 0, 1
	}
	surge = resolve(strategy.MaxSurge, replicas, true)
	unavailable = resolve(strategy.MaxUnavailable, replicas, false)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, unavailable
}

// resolve turns a number or percentage into a number; what is absent or malformed is zero.
func resolve(value *intstr.IntOrString, of int32, roundUp bool) int32 {
	if value == nil {
		return 0
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(value, int(of), roundUp)
	if err != nil {
		return 0
	}
	return int32(n)
}

// limits are the surge and unavailability that the strategy allows: none for Recreate.
func (r *rollout) limits() (surge, unavailable int32) {
	if r.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return 0, 0
	}
	surge, unavailable = rollingLimits(*r.Spec.Replicas, r.Spec.Strategy.RollingUpdate)
	return surge, min(unavailable, *r.Spec.Replicas)
}

// newReplicas is how large the current ReplicaSet should be now: as large as desired, but not so large that all together
// exceed replicas + maxSurge. Too large, it shrinks to what is desired.
func (r *rollout) newReplicas() int32 {
	var have int32
	if r.current != nil {
		have = *r.current.Spec.Replicas
	}
	if r.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType || have > *r.Spec.Replicas {
		return *r.Spec.Replicas
	}
	surge, _ := r.limits()
	room := *r.Spec.Replicas + surge - specReplicas(r.all())
	return have + max(0, min(room, *r.Spec.Replicas-have))
}

// shrinkOld takes pods from the old ReplicaSets, as many as keep replicas - maxUnavailable available.
//
// Worked example: replicas 10, maxSurge 3, maxUnavailable 2, so at least 8 must be available; old 10 (all available), new 3
// (2 of them available). 13 pods - 8 - 1 new unavailable = 4 may go at most; 12 available - 8 = 4 available ones may go.
func (d *deployment) shrinkOld(ctx context.Context, r *rollout) (shrunk bool, err error) {
	_, unavailable := r.limits()
	floor := *r.Spec.Replicas - unavailable
	pendingNew := *r.current.Spec.Replicas - r.current.Status.AvailableReplicas
	budget := specReplicas(r.all()) - floor - pendingNew
	if specReplicas(r.old) == 0 || budget <= 0 {
		return false, nil
	}
	// Pods that are not available go first: they serve nobody, and they would block the rollout that is to repair them.
	broken, err := d.drop(ctx, r, budget, func(rs *appsv1.ReplicaSet) int32 {
		return *rs.Spec.Replicas - rs.Status.AvailableReplicas
	})
	if err != nil {
		return false, err
	}
	healthy, err := d.drop(ctx, r, lastingReplicas(r.all())-floor, func(rs *appsv1.ReplicaSet) int32 {
		return *rs.Spec.Replicas
	})
	return broken || healthy, err
}

// drop takes at most budget pods from the old ReplicaSets, from each no more than of says.
func (d *deployment) drop(ctx context.Context, r *rollout, budget int32, of func(*appsv1.ReplicaSet) int32) (bool, error) {
	dropped := false
	for i, rs := range r.old {
		surplus := min(budget, of(rs))
		if surplus <= 0 {
			continue
		}
		resized, err := d.resize(ctx, r, rs, *rs.Spec.Replicas-surplus)
		if err != nil {
			return dropped, err
		}
		r.old[i], budget, dropped = resized, budget-surplus, true
	}
	return dropped, nil
}

func specReplicas(sets []*appsv1.ReplicaSet) (sum int32) {
	for _, rs := range sets {
		sum += *rs.Spec.Replicas
	}
	return sum
}

// lastingReplicas counts the available pods that their sets will keep. A set that was made smaller a moment ago still reports the pods
// that it is about to delete; whoever counted them would take as many once more, and the rollout would go below its floor (CT-01).
func lastingReplicas(sets []*appsv1.ReplicaSet) (sum int32) {
	for _, rs := range sets {
		sum += min(rs.Status.AvailableReplicas, *rs.Spec.Replicas)
	}
	return sum
}
