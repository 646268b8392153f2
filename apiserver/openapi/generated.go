package openapi

import (
	"reflect"
	"slices"
	"strings"

	extensions "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	aggregator "k8s.io/kube-aggregator/pkg/generated/openapi"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// The types of custom resource definitions and of APIServices have no SwaggerDoc, and client-go has no schema of theirs.
// Their modules bring definitions that Kubernetes' own generator has made, which are taken as they are.
var generators = []generator{
	{"k8s.io/apiextensions-apiserver/", "io.k8s.apiextensions-apiserver.", extensions.GetOpenAPIDefinitions},
	{"k8s.io/kube-aggregator/", "io.k8s.kube-aggregator.", aggregator.GetOpenAPIDefinitions},
}

// generator is a module with generated definitions.
type generator struct {
	packages, prefix string // that its Go packages, and the names of its definitions, begin with
	definitions      func(common.ReferenceCallback) map[string]common.OpenAPIDefinition
}

// generatorOf returns the generator of a definition; nil if it has none.
func generatorOf(name string) *generator {
	i := slices.IndexFunc(generators, func(g generator) bool { return strings.HasPrefix(name, g.prefix) })
	if i < 0 {
		return nil
	}
	return &generators[i]
}

// metaTypes are the Go types that such definitions refer to outside their package, by model name.
var metaTypes = map[string]reflect.Type{
	metav1.ObjectMeta{}.OpenAPIModelName():       reflect.TypeFor[metav1.ObjectMeta](),
	metav1.ListMeta{}.OpenAPIModelName():         reflect.TypeFor[metav1.ListMeta](),
	metav1.Time{}.OpenAPIModelName():             reflect.TypeFor[metav1.Time](),
	runtime.RawExtension{}.OpenAPIModelName():    reflect.TypeFor[runtime.RawExtension](),
	metav1.Status{}.OpenAPIModelName():           reflect.TypeFor[metav1.Status](),
	metav1.GroupVersionKind{}.OpenAPIModelName(): reflect.TypeFor[metav1.GroupVersionKind](),
}

// generated returns a definition of a generator, having added all that it refers to.
func (s *schemas) generated(g *generator, name string) spec.Schema {
	all := g.definitions(func(name string) spec.Ref { return spec.MustCreateRef(s.definitions + name) })
	s.addGenerated(g, all, name)
	return s.byName[name]
}

func (s *schemas) addGenerated(g *generator, all map[string]common.OpenAPIDefinition, name string) {
	definition := all[name]
	out := definition.Schema
	if older, ok := out.Extensions[common.ExtensionV2Schema].(spec.Schema); ok && !s.three {
		out = older
	}
	delete(out.Extensions, common.ExtensionV2Schema)
	s.adapt(&out)
	for t, kinds := range s.kinds {
		if strings.HasPrefix(t.PkgPath(), g.packages) && reflect.Zero(t).Interface().(modelNamer).OpenAPIModelName() == name {
			out.AddExtension("x-kubernetes-group-version-kind", gvkExtension(kinds))
		}
	}
	s.byName[name] = out
	for _, needed := range definition.Dependencies {
		switch _, done := s.byName[needed]; {
		case done:
		case strings.HasPrefix(needed, g.prefix):
			s.addGenerated(g, all, needed)
		default:
			s.refer(metaTypes[needed])
		}
	}
}

// adapt does to a generated schema what the versions of OpenAPI demand: the second has no defaults, and in the third a
// reference has no siblings.
func (s *schemas) adapt(out *spec.Schema) {
	if !s.three {
		out.Default = nil
	}
	for name, property := range out.Properties {
		alone := property.Description == "" && property.Default == nil
		s.adapt(&property)
		if s.three && !alone && property.Ref.String() != "" {
			reference := spec.Schema{SchemaProps: spec.SchemaProps{Ref: property.Ref}}
			property.Ref, property.AllOf = spec.Ref{}, []spec.Schema{reference}
		}
		out.Properties[name] = property
	}
	if out.Items != nil && out.Items.Schema != nil {
		s.adaptItem(out.Items.Schema)
	}
	if out.AdditionalProperties != nil && out.AdditionalProperties.Schema != nil {
		s.adaptItem(out.AdditionalProperties.Schema)
	}
}

// adaptItem is adapt for what lists and maps hold, whose references are bare but for a default.
func (s *schemas) adaptItem(item *spec.Schema) {
	s.adapt(item)
	if item.Ref.String() != "" {
		*item = spec.Schema{SchemaProps: spec.SchemaProps{Ref: item.Ref}}
		return
	}
	item.Default = nil
}
