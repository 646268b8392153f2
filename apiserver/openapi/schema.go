package openapi

import (
	"cmp"
	"encoding/json"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// dialect is what differs between the versions of OpenAPI.
type dialect struct {
	definitions string // where schemas live, as the prefix of a reference
	three       bool

	opening, between, closing string                       // of a document, around its parts
	encode                    func([]byte) ([]byte, error) // JSON to protobuf
}

var (
	v2 = dialect{
		definitions: "#/definitions/", encode: handler.ToProtoBinary,
		opening: `{"swagger":"2.0","info":`, between: `},"definitions":`, closing: `}}`,
	}
	v3 = dialect{
		definitions: "#/components/schemas/", encode: handler3.ToV3ProtoBinary, three: true,
		opening: `{"openapi":"3.0.0","info":`, between: `},"components":{"schemas":`, closing: `}}}`,
	}
)

// schemas collects the schema of every type that a document mentions.
type schemas struct {
	dialect
	byName  map[string]spec.Schema
	kinds   map[reflect.Type][]schema.GroupVersionKind // types that are API kinds themselves
	markers markers
	// refers, if it is not nil, gets the Go types that are referred to, in place of their definitions.
	refers map[reflect.Type]bool
}

// Types say what they are in OpenAPI through these methods (kube-openapi's convention).
type (
	modelNamer   interface{ OpenAPIModelName() string }
	schemaTyper  interface{ OpenAPISchemaType() []string }
	formatter    interface{ OpenAPISchemaFormat() string }
	oneOfTyper   interface{ OpenAPIV3OneOfTypes() []string }
	swaggerDocer interface{ SwaggerDoc() map[string]string }
)

// wellKnown documents the types that have no SwaggerDoc, and their fields.
var wellKnown = map[string]string{
	"io.k8s.apimachinery.pkg.api.resource.Quantity": "Quantity is a fixed-point number with a suffix: \"100m\", \"1.5\", \"2Gi\". " +
		"Suffixes are n, u, m, k, M, G, T, P, E (powers of ten) and Ki, Mi, Gi, Ti, Pi, Ei (powers of two).",
	"io.k8s.apimachinery.pkg.util.intstr.IntOrString": "IntOrString is an integer or a string: a port number or its name, " +
		"a count or a percentage.",
	"io.k8s.apimachinery.pkg.apis.meta.v1.Time":            "Time is a moment in RFC 3339, to the second.",
	"io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime":       "MicroTime is a moment in RFC 3339, to the microsecond.",
	"io.k8s.apimachinery.pkg.apis.meta.v1.Duration":        "Duration is a span of time such as \"1h30m\".",
	"io.k8s.apimachinery.pkg.runtime.RawExtension":         "RawExtension is an object of any kind.",
	"io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent":      "WatchEvent is one message of a watch.",
	"io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent.type": "ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.",
	"io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent.object": "The object after the change, before it for DELETED; only a " +
		"kind and a resourceVersion for BOOKMARK; a Status for ERROR.",
	"io.k8s.apimachinery.pkg.apis.meta.v1.GroupResource":          "GroupResource names a resource and its group, without a version.",
	"io.k8s.apimachinery.pkg.apis.meta.v1.GroupResource.group":    "The group, empty for the core group.",
	"io.k8s.apimachinery.pkg.apis.meta.v1.GroupResource.resource": "The plural name of the resource.",
}

// refer returns a reference to t, whose definition it adds first.
func (s *schemas) refer(t reflect.Type) spec.Schema {
	name := reflect.Zero(t).Interface().(modelNamer).OpenAPIModelName()
	if s.refers != nil {
		s.refers[t] = true
	} else if _, ok := s.byName[name]; !ok {
		s.byName[name] = spec.Schema{} // a type may contain itself
		s.byName[name] = s.define(t, name)
	}
	return spec.Schema{SchemaProps: spec.SchemaProps{Ref: spec.MustCreateRef(s.definitions + name)}}
}

// schemaOf is the schema of a value of type t where it is used.
func (s *schemas) schemaOf(t reflect.Type) spec.Schema {
	switch t.Kind() {
	case reflect.Pointer:
		return s.schemaOf(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return *spec.StrFmtProperty("byte")
		}
		items := s.schemaOf(t.Elem())
		return *spec.ArrayProperty(&items)
	case reflect.Map:
		values := s.schemaOf(t.Elem())
		return *spec.MapProperty(&values)
	case reflect.String:
		out := spec.StringProperty()
		out.Enum = enumOf(t)
		return *out
	case reflect.Bool:
		return *spec.BooleanProperty()
	case reflect.Int32:
		return *spec.Int32Property()
	case reflect.Int, reflect.Int64:
		return *spec.Int64Property()
	case reflect.Float32, reflect.Float64:
		return *spec.Float64Property()
	case reflect.Struct:
		if _, named := reflect.Zero(t).Interface().(modelNamer); named {
			return s.refer(t)
		}
	}
	return object() // interfaces and foreign structs: anything goes
}

func object() spec.Schema {
	return spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}}}
}

// define makes the definition of a struct type.
func (s *schemas) define(t reflect.Type, name string) spec.Schema {
	value := reflect.Zero(t).Interface()
	out := object()
	if g := generatorOf(name); g != nil {
		return s.generated(g, name)
	}
	out.Description = wellKnown[name]
	docs := map[string]string{}
	if d, ok := value.(swaggerDocer); ok {
		docs = d.SwaggerDoc()
		out.Description = docs[""]
	}
	if typed, ok := value.(schemaTyper); ok {
		s.defineScalar(&out, value, typed)
		return out
	}
	marks := s.markers.of(name)
	marks.extend(&out)
	s.addFields(&out, t, docs, marks)
	if kinds := s.kinds[t]; len(kinds) > 0 {
		out.AddExtension("x-kubernetes-group-version-kind", gvkExtension(kinds))
	}
	return out
}

// defineScalar: a struct that is written as a scalar, such as a time or a quantity.
func (s *schemas) defineScalar(out *spec.Schema, value any, typed schemaTyper) {
	out.Type = typed.OpenAPISchemaType()
	if f, ok := value.(formatter); ok {
		out.Format = f.OpenAPISchemaFormat()
	}
	if one, ok := value.(oneOfTyper); ok && s.three {
		out.Type = nil
		for _, t := range one.OpenAPIV3OneOfTypes() {
			out.OneOf = append(out.OneOf, spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{t}}})
		}
	}
}

// addFields adds the fields of struct t; those of an inlined struct are its own.
func (s *schemas) addFields(out *spec.Schema, t reflect.Type, docs map[string]string, marks structMarkers) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, ok := f.Tag.Lookup("json")
		name, flags, _ := strings.Cut(tag, ",")
		switch {
		case !ok || name == "-":
			continue
		case name == "" && f.Anonymous:
			s.addInlined(out, f.Type, docs, marks)
			continue
		case name == "":
			continue
		}
		always := !strings.Contains(flags, "omitempty") && !strings.Contains(flags, "omitzero")
		mark := marks.field(name)
		if mark.defaultValue == nil {
			mark.defaultValue = zeroDefault(f.Type, always)
		}
		out.SetProperty(name, s.property(f, cmp.Or(docs[name], wellKnown["io.k8s."+marks.name+"."+name]), mark))
		if always && !mark.optional || mark.required {
			out.Required = append(out.Required, name)
		}
	}
}

func (s *schemas) addInlined(out *spec.Schema, t reflect.Type, docs map[string]string, marks structMarkers) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if d, ok := reflect.Zero(t).Interface().(swaggerDocer); ok {
		docs = d.SwaggerDoc()
	}
	s.addFields(out, t, docs, marks)
}

// property is the schema of one field, with what its tags and markers say of merging.
func (s *schemas) property(f reflect.StructField, description string, mark fieldMarkers) spec.Schema {
	p := s.schemaOf(f.Type)
	if p.Ref.String() != "" && s.three {
		// In OpenAPI 3.0 a reference may have no siblings, so that it is wrapped.
		p = spec.Schema{SchemaProps: spec.SchemaProps{AllOf: []spec.Schema{p}}}
	}
	p.Description = description
	if s.three {
		p.Default = mark.defaultValue
	}
	if strategy := f.Tag.Get("patchStrategy"); strategy != "" {
		p.AddExtension("x-kubernetes-patch-strategy", strategy)
	}
	if key := f.Tag.Get("patchMergeKey"); key != "" {
		p.AddExtension("x-kubernetes-patch-merge-key", key)
	}
	if mark.listType != "" {
		p.AddExtension("x-kubernetes-list-type", mark.listType)
	}
	if len(mark.listMapKeys) > 0 {
		p.AddExtension("x-kubernetes-list-map-keys", mark.listMapKeys)
	}
	if mark.mapType != "" {
		p.AddExtension("x-kubernetes-map-type", mark.mapType)
	}
	return p
}

// zeroDefault is the default of a field that has no other: Go's zero value, for what is always written. Types that read
// JSON themselves have none. (This is the rule of Kubernetes' generator.)
func zeroDefault(t reflect.Type, always bool) any {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		return map[string]any{}
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64:
		if always {
			return reflect.Zero(t).Interface()
		}
	}
	return nil
}

// gvkExtension is x-kubernetes-group-version-kind of a definition: a list of kinds.
func gvkExtension(kinds []schema.GroupVersionKind) []any {
	var out []any
	for _, k := range kinds {
		out = append(out, kindExtension(k))
	}
	return out
}

func kindExtension(k schema.GroupVersionKind) map[string]any {
	return map[string]any{"group": k.Group, "version": k.Version, "kind": k.Kind}
}
