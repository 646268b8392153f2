package podspec

import (
	"fmt"
	"hash/fnv"

	"encoding/json"

	corev1 "k8s.io/api/core/v1"
)

// Labels and annotations on sandboxes and containers, as Kubernetes names them; crictl and log
// collectors read them.
const (
	LabelPodName       = "io.kubernetes.pod.name"
	LabelPodNamespace  = "io.kubernetes.pod.namespace"
	LabelPodUID        = "io.kubernetes.pod.uid"
	LabelContainerName = "io.kubernetes.container.name"
	// LabelNode says which agent made a sandbox or container. An agent never touches others: a
	// containerd socket may be shared with other tools and, in a lab, with other nodes.
	LabelNode = "kontiki.io/node"

	AnnotationHash                     = "io.kubernetes.container.hash"
	AnnotationRestartCount             = "io.kubernetes.container.restartCount"
	AnnotationTerminationMessagePath   = "io.kubernetes.container.terminationMessagePath"
	AnnotationTerminationMessagePolicy = "io.kubernetes.container.terminationMessagePolicy"
	// AnnotationTerminationMessageFile is the termination message file on the host.
	AnnotationTerminationMessageFile = "kontiki.io/termination-message-file"
	// AnnotationBackOff is the delay in seconds that this restart had to wait, from which the next
	// one follows: so the restart back-off survives a restart of the agent.
	AnnotationBackOff = "kontiki.io/back-off-seconds"
	// AnnotationGracePeriod is the pod's terminationGracePeriodSeconds, for containers whose pod is gone.
	AnnotationGracePeriod = "io.kubernetes.pod.terminationGracePeriod"
)

// Hash changes when the container must be replaced rather than kept: of the mutable fields of a pod's
// containers this is the image alone, as in Kubernetes.
func Hash(c *corev1.Container) string {
	h := fnv.New32a()
	data, _ := json.Marshal([]string{c.Name, c.Image}) // strings always marshal
	h.Write(data)
	return fmt.Sprintf("%x", h.Sum32())
}
