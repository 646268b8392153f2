package customresources

import (
	"fmt"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"kontiki/apiserver/registry"
)

// steps are the names in a simple JSON path (".spec.replicas"), which is all that a scale subresource may have.
func steps(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }

// scaleSubresource shows three places of an object as a Scale.
func (s *served) scaleSubresource() registry.Subresource {
	scale := registry.ScaleSubresource()
	scale.Project.Get, scale.Project.Set = s.showScale, s.setScale
	scale.Project.Replicas = steps(s.scale.SpecReplicasPath)
	scale.Project.Row.Columns = []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]},
		{Name: "Desired", Type: "integer", Description: "Number of desired replicas"},
		{Name: "Available", Type: "integer", Description: "Number of actual replicas"},
		{Name: "Age", Type: "date", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]},
	}
	return scale
}

func (s *served) showScale(parent runtime.Object) (runtime.Object, error) {
	u := parent.(*unstructured.Unstructured)
	out := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{
		Name: u.GetName(), Namespace: u.GetNamespace(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(), CreationTimestamp: u.GetCreationTimestamp(),
	}}
	wanted, found, err := unstructured.NestedInt64(u.Object, steps(s.scale.SpecReplicasPath)...)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, apierrors.NewInternalError(fmt.Errorf("the spec replicas field %q does not exist", s.scale.SpecReplicasPath))
	}
	present, _, err := unstructured.NestedInt64(u.Object, steps(s.scale.StatusReplicasPath)...)
	if err != nil {
		return nil, err
	}
	if path := s.scale.LabelSelectorPath; path != nil && *path != "" {
		if out.Status.Selector, _, err = unstructured.NestedString(u.Object, steps(*path)...); err != nil {
			return nil, err
		}
	}
	out.Spec.Replicas, out.Status.Replicas = int32(wanted), int32(present)
	return out, nil
}

func (s *served) setScale(parent, view runtime.Object) error {
	wanted := int64(view.(*autoscalingv1.Scale).Spec.Replicas)
	return unstructured.SetNestedField(parent.(*unstructured.Unstructured).Object, wanted, steps(s.scale.SpecReplicasPath)...)
}
