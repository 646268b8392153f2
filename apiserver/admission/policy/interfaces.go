package policy

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiadmission "k8s.io/apiserver/pkg/admission"

	"kontiki/apiserver/admission/dynamic"
)

// interfaces are what the patches of k8s.io/apiserver ask for: they make and recognise objects, and no more.
type interfaces struct {
	p     *Policies
	views *dynamic.Views
}

var _ apiadmission.ObjectInterfaces = interfaces{}

// New implements runtime.ObjectCreater.
func (i interfaces) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	return i.views.New(kind)
}

// GetObjectCreater implements ObjectInterfaces.
func (i interfaces) GetObjectCreater() runtime.ObjectCreater { return i }

// GetObjectTyper implements ObjectInterfaces.
func (i interfaces) GetObjectTyper() runtime.ObjectTyper { return i.p.config.Typer }

// GetObjectDefaulter implements ObjectInterfaces; patches do not ask.
func (i interfaces) GetObjectDefaulter() runtime.ObjectDefaulter { return nil }

// GetObjectConvertor implements ObjectInterfaces; patches do not ask.
func (i interfaces) GetObjectConvertor() runtime.ObjectConvertor { return nil }

// GetEquivalentResourceMapper implements ObjectInterfaces; patches do not ask.
func (i interfaces) GetEquivalentResourceMapper() runtime.EquivalentResourceMapper { return nil }
