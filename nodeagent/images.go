package nodeagent

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kontiki/nodeagent/podspec"
	"kontiki/nodeagent/podstate"
)

// Pull back-off of Kubernetes, and how long the pull error itself is shown before the back-off is.
const (
	firstPullBackOff = 10 * time.Second
	maxPullBackOff   = 300 * time.Second
	showPullError    = 2 * time.Second
)

// pull is what a worker knows of the image of one container.
type pull struct {
	image   string
	done    bool // pulled for the start that comes next
	err     error
	failed  time.Time
	backOff time.Duration
}

// ensureImage returns the container's image, or why it waits for it and when to look again. Pulls are tasks.
func (w *worker) ensureImage(ctx context.Context, pod *corev1.Pod, s podstate.Start) (*imageRef, *podstate.Waiting, time.Time) {
	c := s.Container
	key := "pull/" + c.Name
	if w.tasks.has(key) {
		return nil, &podstate.Waiting{}, time.Time{}
	}
	p := w.pullOf(c)
	policy := pullPolicy(c)
	if p.done || policy != corev1.PullAlways {
		ref, err := w.a.cri.image(ctx, c.Image)
		switch {
		case err != nil:
			return nil, w.imageUnknown(pod, c, err), time.Now().Add(firstPullBackOff)
		case ref != nil:
			if !p.done {
				w.a.event(pod, c, corev1.EventTypeNormal, "Pulled", fmt.Sprintf("Container image %q already present on machine", c.Image))
			}
			return ref, nil, time.Time{}
		case policy == corev1.PullNever:
			message := fmt.Sprintf("Container image %q is not present with pull policy of Never", c.Image)
			w.remind(pod, c, corev1.EventTypeWarning, "ErrImageNeverPull", message)
			w.remind(pod, c, corev1.EventTypeWarning, "Failed", "Error: ErrImageNeverPull")
			return nil, &podstate.Waiting{Reason: errNeverPull.Error(), Message: message}, time.Now().Add(firstPullBackOff)
		}
	}
	if p.err != nil {
		if wait, until := w.pullWaits(pod, c, p); wait != nil {
			return nil, wait, until
		}
	}
	w.tasks.start(ctx, key, func(ctx context.Context) { w.pull(ctx, pod, c) })
	return nil, &podstate.Waiting{}, time.Time{}
}

// imageUnknown says that the runtime was asked about an image in vain.
func (w *worker) imageUnknown(pod *corev1.Pod, c *corev1.Container, err error) *podstate.Waiting {
	reason := "ImageInspectError"
	if grpcstatus.Code(err) == codes.InvalidArgument {
		reason = "InvalidImageName"
	}
	w.remind(pod, c, corev1.EventTypeWarning, "InspectFailed", plainError(err))
	w.remind(pod, c, corev1.EventTypeWarning, "Failed", "Error: "+reason)
	return &podstate.Waiting{Reason: reason, Message: plainError(err)}
}

// pullWaits says how a failed pull shows while its back-off lasts; nil when it is over.
func (w *worker) pullWaits(pod *corev1.Pod, c *corev1.Container, p pull) (*podstate.Waiting, time.Time) {
	shown, over := p.failed.Add(showPullError), p.failed.Add(p.backOff)
	switch now := time.Now(); {
	case now.Before(over) && grpcstatus.Code(p.err) == codes.InvalidArgument:
		return w.imageUnknown(pod, c, p.err), over
	case now.Before(shown):
		return &podstate.Waiting{Reason: errImagePull.Error(), Message: plainError(p.err)}, shown
	case now.Before(over):
		w.remind(pod, c, corev1.EventTypeNormal, "BackOff", fmt.Sprintf("Back-off pulling image %q", c.Image))
		w.remind(pod, c, corev1.EventTypeWarning, "Failed", "Error: ImagePullBackOff")
		return &podstate.Waiting{Reason: errImageBackOff.Error(),
			Message: fmt.Sprintf("Back-off pulling image %q: %v: %v", c.Image, errImagePull, plainError(p.err))}, over
	}
	return nil, time.Time{}
}

// pullOf returns a copy of what is known of the container's image, which starts anew when the image is another.
func (w *worker) pullOf(c *corev1.Container) pull {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.pulls[c.Name]
	if p == nil || p.image != c.Image {
		p = &pull{image: c.Image}
		w.pulls[c.Name] = p
	}
	return *p
}

// usedImage says that the container was started: the next start pulls again if its policy is Always.
func (w *worker) usedImage(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.pulls[name]; p != nil {
		p.done = false
	}
}

// pullPolicy of a container; the API server has filled it in, but for pods that were stored otherwise the
// default is worked out here too: Always for no tag or :latest (ND-09).
func pullPolicy(c *corev1.Container) corev1.PullPolicy {
	if c.ImagePullPolicy != "" {
		return c.ImagePullPolicy
	}
	name := c.Image[strings.LastIndexByte(c.Image, '/')+1:]
	if _, _, digest := strings.Cut(name, "@"); digest {
		return corev1.PullIfNotPresent
	}
	if _, tag, ok := strings.Cut(name, ":"); ok && tag != "latest" {
		return corev1.PullIfNotPresent
	}
	return corev1.PullAlways
}

// pull pulls the image with each of the pod's credentials for its registry, or without any.
func (w *worker) pull(ctx context.Context, pod *corev1.Pod, c *corev1.Container) {
	began := time.Now()
	select {
	case w.a.pullSlots <- struct{}{}:
		defer func() { <-w.a.pullSlots }()
	case <-ctx.Done():
		return
	}
	w.a.event(pod, c, corev1.EventTypeNormal, "Pulling", fmt.Sprintf("Pulling image %q", c.Image))
	pulling := time.Now()
	var err error
	for _, auth := range w.credentials(ctx, pod, c.Image) {
		spec := &runtimeapi.ImageSpec{Image: c.Image, UserSpecifiedImage: c.Image}
		if _, err = w.a.cri.images.PullImage(ctx, &runtimeapi.PullImageRequest{Image: spec, Auth: auth}); err == nil {
			break
		}
	}
	if ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.pulls[c.Name]
	if err != nil {
		p.err, p.failed = err, time.Now()
		p.backOff = min(max(2*p.backOff, firstPullBackOff), maxPullBackOff)
		w.a.event(pod, c, corev1.EventTypeWarning, "Failed", fmt.Sprintf("Failed to pull image %q: %s", c.Image, plainError(err)))
		w.a.event(pod, c, corev1.EventTypeWarning, "Failed", "Error: ErrImagePull")
		return
	}
	*p = pull{image: p.image, done: true}
	w.a.event(pod, c, corev1.EventTypeNormal, "Pulled", fmt.Sprintf("Successfully pulled image %q in %s (%s including waiting)", c.Image,
		time.Since(pulling).Truncate(time.Millisecond), time.Since(began).Truncate(time.Millisecond)))
}

// image finds an image that is present; an absent one is nil.
func (c *criClient) image(ctx context.Context, name string) (*imageRef, error) {
	ctx, cancel := context.WithTimeout(ctx, criTimeout)
	defer cancel()
	resp, err := c.images.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: name}})
	if err != nil || resp.Image == nil {
		return nil, err
	}
	ref := &imageRef{id: resp.Image.Id, user: podspec.ImageUser{Name: resp.Image.Username}}
	if resp.Image.Uid != nil {
		ref.user.UID = &resp.Image.Uid.Value
	}
	return ref, nil
}
