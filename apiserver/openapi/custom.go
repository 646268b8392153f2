package openapi

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"kontiki/apiserver/registry"
)

// model is what a body or an answer is: a Go type, or a custom resource, whose definition brings its own schema.
type model interface {
	// reference returns a reference to the model's definition, which it adds first.
	reference(s *schemas) spec.Schema
}

// goType is the model of a kind that has a Go type.
type goType struct{ reflect.Type }

func typeOf[T any]() goType { return goType{reflect.TypeFor[T]()} }

func (t goType) reference(s *schemas) spec.Schema { return s.refer(t.Type) }

// customKind is the model of a custom resource, or of lists of it.
type customKind struct {
	row  *registry.Resource
	list bool
}

func modelOf(r *registry.Resource) model {
	if r.Model != nil {
		return customKind{row: r}
	}
	return goType{reflect.TypeOf(r.New()).Elem()}
}

func listModelOf(r *registry.Resource) model {
	if r.Model != nil {
		return customKind{row: r, list: true}
	}
	return goType{reflect.TypeOf(r.NewList()).Elem()}
}

// name is by Kubernetes' rule: com.example.v1.Boat is the Boat of example.com/v1.
func (k customKind) name() string {
	parts := strings.Split(k.row.Group, ".")
	slices.Reverse(parts)
	name := strings.Join(parts, ".") + "." + k.row.Version + "." + k.kind()
	if slices.ContainsFunc(goTypePrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
		return name + "_custom" // Pod of core.api.k8s.io/v1 is not the Pod that everybody knows
	}
	return name
}

// goTypePrefixes begin the names of Go types.
var goTypePrefixes = []string{"io.k8s.api.", "io.k8s.apimachinery.", "io.k8s.apiextensions-apiserver.", "io.k8s.kube-aggregator."}

func (k customKind) kind() string {
	switch {
	case !k.list:
		return k.row.Kind
	case k.row.ListKind != "":
		return k.row.ListKind
	}
	return k.row.Kind + "List"
}

func (k customKind) reference(s *schemas) spec.Schema {
	name := k.name()
	if _, ok := s.byName[name]; !ok {
		s.byName[name] = k.define(s)
	}
	return spec.Schema{SchemaProps: spec.SchemaProps{Ref: spec.MustCreateRef(s.definitions + name)}}
}

// define makes the definition. Of a schema that cannot be shown it says that it is an object: one broken definition
// should not hide the others.
func (k customKind) define(s *schemas) spec.Schema {
	out := object()
	if k.list {
		out = k.defineList(s)
	} else if shown, err := k.row.Model(!s.three, s.refer); err == nil {
		out = *shown
	}
	kind := map[string]any{"group": k.row.Group, "version": k.row.Version, "kind": k.kind()}
	out.AddExtension("x-kubernetes-group-version-kind", []any{kind})
	return out
}

func (k customKind) defineList(s *schemas) spec.Schema {
	out := object()
	out.Description = fmt.Sprintf("%s is a list of %s", k.kind(), k.row.Kind)
	out.Required = []string{"items"}
	item := customKind{row: k.row}.reference(s)
	items := spec.ArrayProperty(&item).WithDescription(fmt.Sprintf("List of %s.", k.row.Resource))
	docs := metav1.TypeMeta{}.SwaggerDoc()
	metadata := s.refer(reflect.TypeFor[metav1.ListMeta]())
	if s.three {
		metadata = spec.Schema{SchemaProps: spec.SchemaProps{AllOf: []spec.Schema{metadata}}}
	}
	out.SetProperty("apiVersion", *spec.StringProperty().WithDescription(docs["apiVersion"]))
	out.SetProperty("kind", *spec.StringProperty().WithDescription(docs["kind"]))
	out.SetProperty("metadata", *metadata.WithDescription(metav1.PartialObjectMetadataList{}.SwaggerDoc()["metadata"]))
	out.SetProperty("items", *items)
	return out
}

// CustomModels are the definitions of custom resources and of all that they refer to, as a field manager wants them.
func (b *Base) CustomModels(rows []*registry.Resource) (map[string]*spec.Schema, error) {
	s := b.schemas(v3)
	for _, r := range rows {
		if _, err := r.Model(false, s.refer); err != nil {
			return nil, err
		}
		customKind{row: r}.reference(s)
	}
	return s.pointers(), nil
}
