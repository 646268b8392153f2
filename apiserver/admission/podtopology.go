package admission

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// podTopology tells pods the zone and region of their node: it puts the node's labels on the binding that assigns a
// pod to it, from where they come to the pod, and on pods that are created with a node.
type podTopology struct{ objects Objects }

var topologyLabels = []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion}

// Mutate implements Mutator.
func (p podTopology) Mutate(ctx context.Context, r *Request) error {
	if r.Operation != Create {
		return nil
	}
	switch o := r.Object.(type) {
	case *corev1.Pod:
		if r.Subresource == "" && o.Spec.NodeName != "" {
			return p.label(ctx, o.Spec.NodeName, &o.Labels)
		}
	case *corev1.Binding:
		if o.Target.Kind == "Node" {
			return p.label(ctx, o.Target.Name, &o.Labels)
		}
	}
	return nil
}

func (p podTopology) label(ctx context.Context, node string, labels *map[string]string) error {
	found, err := p.objects.Get(ctx, nodes, "", node)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, key := range topologyLabels {
		value, ok := found.(*corev1.Node).Labels[key]
		if !ok {
			continue
		}
		if *labels == nil {
			*labels = map[string]string{}
		}
		(*labels)[key] = value
	}
	return nil
}
