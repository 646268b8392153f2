package customresources

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Converter changes objects of one kind into another of its versions, by a webhook. What it returns is its own.
type Converter interface {
	Convert(d *apiextensionsv1.CustomResourceDefinition, objects []*unstructured.Unstructured, to schema.GroupVersion) ([]*unstructured.Unstructured, error)
}

// toStored returns what makes an object of any version one of that in which it will be stored.
func (f *family) toStored(version string) func(runtime.Object) (runtime.Object, error) {
	return f.converting(version, nil)
}

// fromStored returns what makes an object out of the store one of a version. Objects stay stored in the version that was
// stored when they were written, so that it may be of any version that the definition has; the defaults are those of
// that version, as Kubernetes documents it.
func (f *family) fromStored(version string) func(runtime.Object) (runtime.Object, error) {
	return f.converting(version, (*compiled).setDefaults)
}

// converting returns what makes any object of the kind one of a version, once prepare has seen it as it was. An object
// that is of the version already is changed in place.
func (f *family) converting(version string, prepare func(*compiled, *unstructured.Unstructured)) func(runtime.Object) (runtime.Object, error) {
	to := schema.GroupVersion{Group: f.group, Version: version}
	return func(obj runtime.Object) (runtime.Object, error) {
		u := obj.(*unstructured.Unstructured)
		from := u.GroupVersionKind().GroupVersion()
		was, err := f.schemaOf(from.Version)
		if err != nil {
			return nil, err
		}
		if from != to {
			u = u.DeepCopy()
		}
		if _, err := was.coerce(u, coercion{repair: true}); err != nil {
			return nil, err
		}
		if prepare != nil {
			prepare(was, u)
		}
		if from == to {
			return u, nil
		}
		if u, err = f.convert(u, to); err != nil {
			return nil, err
		}
		is, err := f.schemaOf(version)
		if err != nil {
			return nil, err
		}
		_, err = is.coerce(u, coercion{})
		return u, err
	}
}

// convert changes the version of u, which is ours.
func (f *family) convert(u *unstructured.Unstructured, to schema.GroupVersion) (*unstructured.Unstructured, error) {
	if !f.webhook {
		u.SetAPIVersion(to.String())
		return u, nil
	}
	d, err := f.config.Load()
	if err != nil {
		return nil, err
	}
	out, err := f.config.Converter.Convert(d, []*unstructured.Unstructured{u}, to)
	if err != nil {
		return nil, fmt.Errorf("%s to version %s: %w", f.name, to.Version, err)
	}
	return out[0], nil
}
