package v1beta1

import (
	"encoding/json"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/conversion"

	v1 "kontiki/examples/operator/api/v1"
)

// restAnnotation keeps what v1 has and this version has no field for. Whoever reads a Site here and writes it back
// must lose nothing of it: a conversion has to be able to return (KEP-598).
const restAnnotation = "web.example.com/v1"

// freeReplicas is how large a site may be in v1 that is not paid for.
const freeReplicas = 3

// rest is what the annotation holds.
type rest struct {
	Plan   string        `json:"plan,omitempty"`
	Status v1.SiteStatus `json:"status,omitempty"`
}

// ConvertTo implements conversion.Convertible.
func (s *Site) ConvertTo(hub conversion.Hub) error {
	out := hub.(*v1.Site)
	out.ObjectMeta = *s.ObjectMeta.DeepCopy()
	var kept rest
	if text, ok := out.Annotations[restAnnotation]; ok {
		if err := json.Unmarshal([]byte(text), &kept); err != nil {
			return err
		}
		delete(out.Annotations, restAnnotation)
	}
	out.Status = kept.Status
	out.Status.Replicas, out.Status.Selector = s.Status.Replicas, s.Status.Selector
	out.Spec = v1.SiteSpec{Greeting: s.Spec.Greeting, Image: splitImage(s.Spec.Image), Replicas: s.Spec.Size, Plan: kept.Plan}
	if kept.Plan == "" && s.Spec.Size != nil && *s.Spec.Size > freeReplicas {
		out.Spec.Plan = "paid" // this version knows no plans, and no limit
	}
	return nil
}

// ConvertFrom implements conversion.Convertible.
func (s *Site) ConvertFrom(hub conversion.Hub) error {
	in := hub.(*v1.Site)
	kept, err := json.Marshal(rest{Plan: in.Spec.Plan, Status: in.Status})
	if err != nil {
		return err
	}
	s.ObjectMeta = *in.ObjectMeta.DeepCopy()
	if s.Annotations == nil {
		s.Annotations = map[string]string{}
	}
	s.Annotations[restAnnotation] = string(kept)
	s.Spec = SiteSpec{Greeting: in.Spec.Greeting, Image: joinImage(in.Spec.Image), Size: in.Spec.Replicas}
	s.Status = SiteStatus{Replicas: in.Status.Replicas, Selector: in.Status.Selector}
	return nil
}

// splitImage takes the last colon for that of the tag, unless a slash follows: then it belongs to a port.
func splitImage(image string) v1.Image {
	i := strings.LastIndexByte(image, ':')
	if i < 0 || strings.Contains(image[i:], "/") {
		return v1.Image{Repository: image}
	}
	return v1.Image{Repository: image[:i], Tag: image[i+1:]}
}

func joinImage(image v1.Image) string {
	if image.Tag == "" {
		return image.Repository
	}
	return image.Repository + ":" + image.Tag
}
