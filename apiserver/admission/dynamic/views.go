package dynamic

import (
	"fmt"
	"reflect"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"kontiki/apiserver/admission"
)

// A View is a request as it is seen in one API version. Its objects name their kind; they are shared and not to be changed.
type View = apiadmission.VersionedAttributes

// Views are those of one request, made when they are first needed. They are not safe for concurrent use; a View is, for
// reading, except that it must not be handed to CEL by several at a time.
type Views struct {
	request  *admission.Request
	versions Versions
	byKind   map[schema.GroupVersionKind]*View
}

// NewViews makes none yet.
func NewViews(r *admission.Request, versions Versions) *Views {
	return &Views{request: r, versions: versions}
}

// As is the request as seen in the version of a kind.
func (v *Views) As(kind schema.GroupVersionKind) (*View, error) {
	if view := v.byKind[kind]; view != nil {
		return view, nil
	}
	r := v.request
	obj, err := v.convert(r.Object, kind)
	if err != nil {
		return nil, err
	}
	old, err := v.convert(r.Old, kind)
	if err != nil {
		return nil, err
	}
	view := &View{VersionedKind: kind, Attributes: apiadmission.NewAttributesRecord(obj, old, r.Kind, r.Namespace, r.Name,
		r.Resource, r.Subresource, apiadmission.Operation(r.Operation), r.Options, r.DryRun, userOf(r.User))}
	if obj != nil {
		view.VersionedObject.Set(obj)
	}
	if old != nil {
		view.VersionedOldObject.Set(old)
	}
	if v.byKind == nil {
		v.byKind = map[schema.GroupVersionKind]*View{}
	}
	v.byKind[kind] = view
	return view, nil
}

// New is an empty object of a kind.
func (v *Views) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	return v.versions.New(kind)
}

// Replace gives the request's object the content of obj, which is of that kind, with what obj leaves out, and forgets the
// views of what it was.
func (v *Views) Replace(obj runtime.Object, kind schema.GroupVersionKind) error {
	v.versions.Default(obj, kind)
	converted, err := v.versions.Convert(obj, kind, v.request.Kind)
	if err != nil {
		return err
	}
	into, from := reflect.ValueOf(v.request.Object).Elem(), reflect.ValueOf(converted).Elem()
	if into.Type() != from.Type() {
		return fmt.Errorf("cannot replace a %s by a %s", into.Type(), from.Type())
	}
	into.Set(from) // in place: others hold the same pointer
	v.byKind = nil
	return nil
}

func (v *Views) convert(obj runtime.Object, kind schema.GroupVersionKind) (runtime.Object, error) {
	if obj == nil {
		return nil, nil
	}
	if kind == v.request.Kind {
		return Named(obj, kind), nil
	}
	return v.versions.Convert(obj, v.request.Kind, kind)
}

// Named is obj with its kind: itself, or a shallow copy, since objects of the store name none and are shared.
func Named(obj runtime.Object, kind schema.GroupVersionKind) runtime.Object {
	if obj.GetObjectKind().GroupVersionKind() == kind {
		return obj
	}
	copied := reflect.New(reflect.TypeOf(obj).Elem())
	copied.Elem().Set(reflect.ValueOf(obj).Elem())
	out := copied.Interface().(runtime.Object) // of obj's type
	out.GetObjectKind().SetGroupVersionKind(kind)
	return out
}

func userOf(info authenticationv1.UserInfo) user.Info {
	out := &user.DefaultInfo{Name: info.Username, UID: info.UID, Groups: info.Groups}
	for key, values := range info.Extra {
		if out.Extra == nil {
			out.Extra = map[string][]string{}
		}
		out.Extra[key] = values
	}
	return out
}
