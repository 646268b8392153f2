package openapi

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// markers are the +listType, +listMapKey, +mapType and +default comments of k8s.io/api. Reflection
// cannot see comments, but the schema by which server-side apply merges carries them.
type markers struct{ schema *smdschema.Schema }

type structMarkers map[string]fieldMarkers

type fieldMarkers struct {
	listType     string // "map", "set", "atomic" or ""
	listMapKeys  []any
	atomicMap    bool
	defaultValue any
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

// of returns the markers of the fields of a definition.
func (m markers) of(definition string) structMarkers {
	if m.schema == nil {
		return nil
	}
	def, ok := m.schema.FindNamedType(definition)
	if !ok || def.Map == nil {
		return nil
	}
	out := structMarkers{}
	for _, f := range def.Map.Fields {
		out[f.Name] = marksOf(f)
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
		mark.atomicMap = true
	}
	if rel := f.Type.ElementRelationship; rel != nil && *rel == smdschema.Atomic {
		mark.atomicMap = true
	}
	return mark
}
