package definitions

import (
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// reflector makes structural schemas of Go types, until what it may write is used up.
type reflector struct{ left int }

// fieldOverhead is about what a field costs in JSON beside its name and its description.
const fieldOverhead = 45

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// scalars are the structs that JSON has as a single value.
var scalars = map[reflect.Type]apiextensionsv1.JSONSchemaProps{
	typeOf[metav1.Time]():        {Type: "string", Format: "date-time"},
	typeOf[metav1.MicroTime]():   {Type: "string", Format: "date-time"},
	typeOf[intstr.IntOrString](): {XIntOrString: true, AnyOf: []apiextensionsv1.JSONSchemaProps{{Type: "integer"}, {Type: "string"}}},
	typeOf[resource.Quantity](): {XIntOrString: true, AnyOf: []apiextensionsv1.JSONSchemaProps{{Type: "integer"}, {Type: "string"}},
		Pattern: `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`},
}

func (r *reflector) schemaOf(t reflect.Type) apiextensionsv1.JSONSchemaProps {
	if scalar, ok := scalars[t]; ok {
		return scalar
	}
	switch t.Kind() {
	case reflect.Pointer:
		return r.schemaOf(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return apiextensionsv1.JSONSchemaProps{Type: "string", Format: "byte"}
		}
		items := r.schemaOf(t.Elem())
		return apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &items}}
	case reflect.Map:
		values := r.schemaOf(t.Elem())
		return apiextensionsv1.JSONSchemaProps{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &values}}
	case reflect.String:
		return apiextensionsv1.JSONSchemaProps{Type: "string"}
	case reflect.Bool:
		return apiextensionsv1.JSONSchemaProps{Type: "boolean"}
	case reflect.Int32:
		return apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "int32"}
	case reflect.Int, reflect.Int64:
		return apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "int64"}
	}
	out := object(map[string]apiextensionsv1.JSONSchemaProps{})
	r.addFields(&out, t)
	return out
}

// addFields adds the fields of a struct, and those of the structs that are inlined in it.
func (r *reflector) addFields(out *apiextensionsv1.JSONSchemaProps, t reflect.Type) {
	var docs map[string]string
	if d, ok := reflect.Zero(t).Interface().(interface{ SwaggerDoc() map[string]string }); ok {
		docs = d.SwaggerDoc()
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, flags, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" && f.Anonymous {
			r.addFields(out, f.Type)
			continue
		}
		if name == "" || name == "-" || r.left <= 0 {
			continue
		}
		r.left -= len(name) + len(docs[name]) + fieldOverhead
		out.Properties[name] = r.field(f, docs[name])
		if !strings.Contains(flags, "omitempty") && f.Type.Kind() == reflect.String {
			out.Required = append(out.Required, name)
		}
	}
}

// field is the schema of one. Lists that are merged by a key say so, if every item must have it.
func (r *reflector) field(f reflect.StructField, description string) apiextensionsv1.JSONSchemaProps {
	out := r.schemaOf(f.Type)
	out.Description = description
	if key := f.Tag.Get("patchMergeKey"); key != "" && out.Type == "array" && slices.Contains(out.Items.Schema.Required, key) {
		kind := "map"
		out.XListType, out.XListMapKeys = &kind, []string{key}
	}
	return out
}
