package openapi

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// markers are the +listType, +listMapKey, +mapType and +default comments of k8s.io/api. Reflection
// cannot see comments, but the schema by which server-side apply merges carries them.
type markers struct{ schema *smdschema.Schema }

// structMarkers are those of a definition.
type structMarkers struct {
	name   string // of the definition, without "io.k8s."
	atomic bool
	unions []any
	fields map[string]fieldMarkers
}

type fieldMarkers struct {
	listType           string // "map", "set", "atomic" or ""
	listMapKeys        []any
	mapType            string // "atomic", "granular" or ""
	defaultValue       any
	optional, required bool // whatever the tag says
}

// newMarkers takes the schema out of a converter, which hands it out only with a value of a type that
// it knows. Without one there are no markers.
func newMarkers(converter managedfields.TypeConverter, example runtime.Object) markers {
	typed, err := converter.ObjectToTyped(example)
	if err != nil {
		return markers{}
	}
	return markers{schema: typed.Schema()}
}

// of returns the markers of a definition.
func (m markers) of(definition string) structMarkers {
	out := structMarkers{name: strings.TrimPrefix(definition, "io.k8s."), fields: map[string]fieldMarkers{}}
	if m.schema == nil {
		return out
	}
	def, ok := m.schema.FindNamedType(definition)
	if !ok || def.Map == nil {
		return out
	}
	out.atomic = def.Map.ElementRelationship == smdschema.Atomic
	for _, u := range def.Map.Unions {
		out.unions = append(out.unions, unionExtension(u))
	}
	for _, f := range def.Map.Fields {
		out.fields[f.Name] = marksOf(f)
	}
	return out
}

// field returns the markers of a field, with those that only a comment has.
func (m structMarkers) field(name string) fieldMarkers {
	mark, key := m.fields[name], m.name+"."+name
	mark.optional, mark.required = optionalFields.has(m.name, name), requiredFields.has(m.name, name)
	if mark.listType == "" && atomicLists.has(m.name, name) {
		mark.listType = "atomic"
	}
	if mark.defaultValue == nil {
		mark.defaultValue = defaults[key]
	}
	if granularMaps[key] {
		mark.mapType = "granular"
	}
	return mark
}

// extend puts what is said of a definition as a whole into its schema.
func (m structMarkers) extend(out *spec.Schema) {
	if m.atomic || atomicStructs[m.name] {
		out.AddExtension("x-kubernetes-map-type", "atomic")
	}
	if len(m.unions) > 0 {
		out.AddExtension("x-kubernetes-unions", m.unions)
	}
}

func unionExtension(u smdschema.Union) map[string]any {
	fields := map[string]any{}
	for _, f := range u.Fields {
		fields[f.FieldName] = f.DiscriminatorValue
	}
	out := map[string]any{"fields-to-discriminateBy": fields}
	if u.Discriminator != nil {
		out["discriminator"] = *u.Discriminator
	}
	return out
}

func marksOf(f smdschema.StructField) fieldMarkers {
	mark := fieldMarkers{defaultValue: f.Default}
	if list := f.Type.Inlined.List; list != nil {
		switch {
		case list.ElementRelationship == smdschema.Atomic:
			mark.listType = "atomic"
		case len(list.Keys) > 0:
			mark.listType = "map"
		default:
			mark.listType = "set"
		}
		for _, key := range list.Keys {
			mark.listMapKeys = append(mark.listMapKeys, key)
		}
	}
	if m := f.Type.Inlined.Map; m != nil && m.ElementRelationship == smdschema.Atomic {
		mark.mapType = "atomic"
	}
	if rel := f.Type.ElementRelationship; rel != nil && *rel == smdschema.Atomic {
		mark.mapType = "atomic"
	}
	return mark
}
