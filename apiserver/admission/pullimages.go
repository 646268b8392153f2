package admission

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// alwaysPullImages has every container's image pulled anew, so that nobody runs an image that is on a node because somebody
// with the credentials for it has run it there. Off unless it is enabled.
type alwaysPullImages struct{}

var pods = corev1.SchemeGroupVersion.WithResource("pods")

// Mutate implements Mutator.
func (alwaysPullImages) Mutate(_ context.Context, r *Request) error {
	pod, ok := r.Object.(*corev1.Pod)
	if !ok || r.Operation != Create && r.Operation != Update || r.Subresource != "" && r.Subresource != "ephemeralcontainers" {
		return nil
	}
	if old, ok := r.Old.(*corev1.Pod); ok && sameImages(pod, old) {
		return nil
	}
	eachContainer(pod, func(_ string, _ *string, policy *corev1.PullPolicy) { *policy = corev1.PullAlways })
	for i := range pod.Spec.Volumes {
		if image := pod.Spec.Volumes[i].Image; image != nil {
			image.PullPolicy = corev1.PullAlways
		}
	}
	return nil
}

// sameImages: an update that brings no new image leaves the policies of older pods alone.
func sameImages(pod, old *corev1.Pod) bool {
	images := func(p *corev1.Pod) map[string]string {
		out := map[string]string{}
		eachContainer(p, func(name string, image *string, _ *corev1.PullPolicy) { out[name] = *image })
		return out
	}
	return equality.Semantic.DeepEqual(images(pod), images(old))
}

// eachContainer visits containers of all sorts.
func eachContainer(pod *corev1.Pod, visit func(name string, image *string, policy *corev1.PullPolicy)) {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			visit(list[i].Name, &list[i].Image, &list[i].ImagePullPolicy)
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		c := &pod.Spec.EphemeralContainers[i]
		visit(c.Name, &c.Image, &c.ImagePullPolicy)
	}
}
