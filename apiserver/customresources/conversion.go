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

// toStored makes an object of any version one of that in which it will be stored.
func (f *family) toStored(version string) conversion { return f.conversion(version, nil) }

// fromStored makes an object out of the store one of a version. Objects stay stored in the version that was stored when
// they were written, so that it may be of any version that the definition has; the defaults are those of that version,
// as Kubernetes documents it.
func (f *family) fromStored(version string) conversion {
	return f.conversion(version, (*compiled).setDefaults)
}

// conversion makes any object of the kind one of a version, once prepare, if there is one, has seen it as it was. An
// object that is of the version already is changed in place.
type conversion struct {
	*family
	version string
	to      schema.GroupVersion
	prepare func(*compiled, *unstructured.Unstructured)
}

func (f *family) conversion(version string, prepare func(*compiled, *unstructured.Unstructured)) conversion {
	return conversion{f, version, schema.GroupVersion{Group: f.group, Version: version}, prepare}
}

// one converts an object.
func (c conversion) one(obj runtime.Object) (runtime.Object, error) {
	out, err := c.all([]runtime.Object{obj})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// all converts many objects, for which a webhook is asked once.
func (c conversion) all(objects []runtime.Object) ([]runtime.Object, error) {
	out := make([]runtime.Object, len(objects))
	var others []*unstructured.Unstructured // of another version
	var places []int                        // of them in out
	for i, obj := range objects {
		u, err := c.asWas(obj.(*unstructured.Unstructured))
		if err != nil {
			return nil, err
		}
		if out[i] = u; u.GroupVersionKind().GroupVersion() != c.to {
			others, places = append(others, u), append(places, i)
		}
	}
	if len(others) == 0 {
		return out, nil
	}
	converted, err := c.convert(others, c.to)
	if err != nil {
		return nil, err
	}
	is, err := c.schemaOf(c.version)
	if err != nil {
		return nil, err
	}
	for i, u := range converted {
		if _, err := is.coerce(u, coercion{}); err != nil {
			return nil, err
		}
		out[places[i]] = u
	}
	return out, nil
}

// asWas makes an object fit the version that it is in. Unless that is the wanted one, it is copied first.
func (c conversion) asWas(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	from := u.GroupVersionKind().GroupVersion()
	was, err := c.schemaOf(from.Version)
	if err != nil {
		return nil, err
	}
	if from != c.to {
		u = u.DeepCopy()
	}
	if _, err := was.coerce(u, coercion{repair: true}); err != nil {
		return nil, err
	}
	if c.prepare != nil {
		c.prepare(was, u)
	}
	return u, nil
}

// convert changes the version of objects, which are ours.
func (f *family) convert(objects []*unstructured.Unstructured, to schema.GroupVersion) ([]*unstructured.Unstructured, error) {
	if !f.webhook {
		for _, u := range objects {
			u.SetAPIVersion(to.String())
		}
		return objects, nil
	}
	d, err := f.config.Load()
	if err != nil {
		return nil, err
	}
	out, err := f.config.Converter.Convert(d, objects, to)
	if err != nil {
		return nil, fmt.Errorf("%s to version %s: %w", f.name, to.Version, err)
	}
	return out, nil
}
