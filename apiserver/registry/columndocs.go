package registry

import (
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// columnDocs are the descriptions of the columns of workloads, by the row's resource: mostly those of the field that a column shows.
// Name and Age are described for all rows (columns.go).
var columnDocs = map[string]map[string]string{
	"pods": {
		"Ready":           "The aggregate readiness state of this pod for accepting traffic.",
		"Status":          "The aggregate status of the containers in this pod.",
		"Restarts":        "The number of times the containers in this pod have been restarted and when the last container in this pod has restarted.",
		"IP":              corev1.PodStatus{}.SwaggerDoc()["podIP"],
		"Node":            corev1.PodSpec{}.SwaggerDoc()["nodeName"],
		"Nominated Node":  corev1.PodStatus{}.SwaggerDoc()["nominatedNodeName"],
		"Readiness Gates": corev1.PodSpec{}.SwaggerDoc()["readinessGates"],
	},
	"podtemplates": {"Pod Labels": "The labels for the pod template."},
	"replicationcontrollers": {
		"Desired":  corev1.ReplicationControllerSpec{}.SwaggerDoc()["replicas"],
		"Current":  corev1.ReplicationControllerStatus{}.SwaggerDoc()["replicas"],
		"Ready":    corev1.ReplicationControllerStatus{}.SwaggerDoc()["readyReplicas"],
		"Selector": corev1.ReplicationControllerSpec{}.SwaggerDoc()["selector"],
	},
	"replicasets": {
		"Desired":  appsv1.ReplicaSetSpec{}.SwaggerDoc()["replicas"],
		"Current":  appsv1.ReplicaSetStatus{}.SwaggerDoc()["replicas"],
		"Ready":    appsv1.ReplicaSetStatus{}.SwaggerDoc()["readyReplicas"],
		"Selector": appsv1.ReplicaSetSpec{}.SwaggerDoc()["selector"],
	},
	"deployments": {
		"Ready":      "Number of the pod with ready state",
		"Up-to-date": appsv1.DeploymentStatus{}.SwaggerDoc()["updatedReplicas"],
		"Available":  appsv1.DeploymentStatus{}.SwaggerDoc()["availableReplicas"],
		"Selector":   appsv1.DeploymentSpec{}.SwaggerDoc()["selector"],
	},
	"daemonsets": {
		"Desired":       appsv1.DaemonSetStatus{}.SwaggerDoc()["desiredNumberScheduled"],
		"Current":       appsv1.DaemonSetStatus{}.SwaggerDoc()["currentNumberScheduled"],
		"Ready":         appsv1.DaemonSetStatus{}.SwaggerDoc()["numberReady"],
		"Up-to-date":    appsv1.DaemonSetStatus{}.SwaggerDoc()["updatedNumberScheduled"],
		"Available":     appsv1.DaemonSetStatus{}.SwaggerDoc()["numberAvailable"],
		"Node Selector": corev1.PodSpec{}.SwaggerDoc()["nodeSelector"],
		"Selector":      appsv1.DaemonSetSpec{}.SwaggerDoc()["selector"],
	},
	"statefulsets": {"Ready": "Number of the pod with ready state"},
	"jobs": {
		"Status":      "Status of the job.",
		"Completions": batchv1.JobStatus{}.SwaggerDoc()["succeeded"],
		"Duration":    "Time required to complete the job.",
		"Selector":    batchv1.JobSpec{}.SwaggerDoc()["selector"],
	},
	"cronjobs": {
		"Schedule":      batchv1.CronJobSpec{}.SwaggerDoc()["schedule"],
		"Timezone":      batchv1.CronJobSpec{}.SwaggerDoc()["timeZone"],
		"Suspend":       batchv1.CronJobSpec{}.SwaggerDoc()["suspend"],
		"Active":        batchv1.CronJobStatus{}.SwaggerDoc()["active"],
		"Last Schedule": batchv1.CronJobStatus{}.SwaggerDoc()["lastScheduleTime"],
		"Selector":      batchv1.JobSpec{}.SwaggerDoc()["selector"],
	},
	"horizontalpodautoscalers": {
		"Reference": autoscalingv2.HorizontalPodAutoscalerSpec{}.SwaggerDoc()["scaleTargetRef"],
		"Targets":   autoscalingv2.HorizontalPodAutoscalerSpec{}.SwaggerDoc()["metrics"],
		"MinPods":   autoscalingv2.HorizontalPodAutoscalerSpec{}.SwaggerDoc()["minReplicas"],
		"MaxPods":   autoscalingv2.HorizontalPodAutoscalerSpec{}.SwaggerDoc()["maxReplicas"],
		"Replicas":  autoscalingv2.HorizontalPodAutoscalerStatus{}.SwaggerDoc()["currentReplicas"],
	},
	"poddisruptionbudgets": {
		"Min Available":       "The minimum number of pods that must be available.",
		"Max Unavailable":     "The maximum number of pods that may be unavailable.",
		"Allowed Disruptions": "Calculated number of pods that may be disrupted at this time.",
	},
	"controllerrevisions": {
		"Controller": "Controller of the object",
		"Revision":   appsv1.ControllerRevision{}.SwaggerDoc()["revision"],
	},
}

// describeColumns gives the columns of a row their descriptions.
func describeColumns(r *Resource) {
	r.Columns = slices.Clone(r.Columns) // rows may share them
	for i := range r.Columns {
		c := &r.Columns[i]
		if text := cmp.Or(columnDocs[r.Resource][c.Name], columnDocsOfRest[r.Resource][c.Name]); text != "" {
			c.Description = text
		}
	}
}
