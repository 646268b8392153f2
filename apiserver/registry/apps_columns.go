package registry

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
)

var deploymentColumns = columns(
	[]string{"Name", "Ready", "Up-to-date", "Available", "Age"},
	"Containers", "Images", "Selector")

func deploymentRow(d *appsv1.Deployment, now time.Time) []any {
	names, images := containerCells(d.Spec.Template.Spec.Containers)
	return []any{
		d.Name, fmt.Sprintf("%d/%d", d.Status.ReadyReplicas, replicas(d.Spec.Replicas)),
		int64(d.Status.UpdatedReplicas), int64(d.Status.AvailableReplicas), age(&d.ObjectMeta, now),
		names, images, selectorCell(d.Spec.Selector),
	}
}

var replicaSetColumns = columns(
	[]string{"Name", "Desired:integer", "Current:integer", "Ready:integer", "Age"},
	"Containers", "Images", "Selector")

func replicaSetRow(rs *appsv1.ReplicaSet, now time.Time) []any {
	names, images := containerCells(rs.Spec.Template.Spec.Containers)
	return []any{
		rs.Name, int64(replicas(rs.Spec.Replicas)), int64(rs.Status.Replicas), int64(rs.Status.ReadyReplicas), age(&rs.ObjectMeta, now),
		names, images, selectorCell(rs.Spec.Selector),
	}
}

// replicas of a spec that has been defaulted; an object from elsewhere may lack them.
func replicas(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}
