package registry

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// resize changes how much cpu and memory the containers of a running pod get, and nothing else. The node
// agent reports in the status what has become of it. Not yet: resources of the pod as a whole.
func resize(r *Resource) Subresource {
	return Subresource{
		Name:  "resize",
		Kind:  r.GroupVersionKind(),
		New:   r.New,
		Verbs: []string{"get", "patch", "update"},
		Update: updatePreparer(func(p, old *corev1.Pod) {
			wanted := p.Spec
			p.ObjectMeta, p.Spec, p.Status = keepVersion(p, old), *old.Spec.DeepCopy(), *old.Status.DeepCopy()
			takeResources(p.Spec.Containers, wanted.Containers)
			takeResources(p.Spec.InitContainers, wanted.InitContainers)
		}),
		Owns: []string{
			"spec.containers.*.resources", "spec.containers.*.resizePolicy",
			"spec.initContainers.*.resources", "spec.initContainers.*.resizePolicy",
		},
		Validate: validateResize,
	}
}

// takeResources copies resources and resize policies of the containers of one name.
func takeResources(into, from []corev1.Container) {
	wanted := map[string]*corev1.Container{}
	for i := range from {
		wanted[from[i].Name] = &from[i]
	}
	for i := range into {
		if w := wanted[into[i].Name]; w != nil {
			into[i].Resources, into[i].ResizePolicy = w.Resources, w.ResizePolicy
		}
	}
}

func validateResize(_ context.Context, obj, old runtime.Object) field.ErrorList {
	p, was := obj.(*corev1.Pod), old.(*corev1.Pod)
	faults := validatePodSpec(specPath, &p.Spec, &p.ObjectMeta)
	if now, then := qosClass(&p.Spec), qosClass(&was.Spec); now != then {
		faults = append(faults, field.Invalid(specPath, now, "Pod QOS Class may not change as a result of resizing"))
	}
	faults = append(faults, resizedContainers(specPath.Child("containers"), p.Spec.Containers, was.Spec.Containers, false)...)
	return append(faults, resizedContainers(specPath.Child("initContainers"), p.Spec.InitContainers, was.Spec.InitContainers, true)...)
}

func resizedContainers(path *field.Path, now, was []corev1.Container, sidecarsOnly bool) field.ErrorList {
	var faults field.ErrorList
	for i := range now {
		at, c, old := path.Index(i).Child("resources"), &now[i], &was[i]
		if apiequality.Semantic.DeepEqual(c.Resources, old.Resources) {
			continue
		}
		if sidecarsOnly && (c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways) {
			faults = append(faults, field.Forbidden(at, "resources of non-restartable init containers are immutable"))
		}
		if !apiequality.Semantic.DeepEqual(c.Resources.Claims, old.Resources.Claims) {
			faults = append(faults, field.Forbidden(at.Child("claims"), "claims are immutable"))
		}
		for _, list := range []struct {
			name     string
			now, was corev1.ResourceList
		}{{"limits", c.Resources.Limits, old.Resources.Limits}, {"requests", c.Resources.Requests, old.Resources.Requests}} {
			faults = append(faults, resizedList(at.Child(list.name), list.now, list.was)...)
		}
	}
	return faults
}

// resizedList: cpu and memory may change, and may not go away once they are there.
func resizedList(path *field.Path, now, was corev1.ResourceList) field.ErrorList {
	var faults field.ErrorList
	for name, quantity := range inOrder(now) {
		before, had := was[name]
		if (!had || quantity.Cmp(before) != 0) && name != corev1.ResourceCPU && name != corev1.ResourceMemory {
			faults = append(faults, field.Forbidden(path.Key(string(name)), "only cpu and memory resources are mutable"))
		}
	}
	for name := range inOrder(was) {
		if _, has := now[name]; !has {
			faults = append(faults, field.Forbidden(path, fmt.Sprintf("resource %s cannot be removed", name)))
		}
	}
	return faults
}
