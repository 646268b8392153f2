package registry

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// definitionWarnings are of what a definition has and its predecessor had not: formats that nobody checks, and sets of
// what is no scalar.
func definitionWarnings(_ context.Context, obj, old runtime.Object) []string {
	var before []string
	if old != nil {
		before = schemaWarnings(old)
	}
	return slices.DeleteFunc(schemaWarnings(obj), func(text string) bool { return slices.Contains(before, text) })
}

func schemaWarnings(obj runtime.Object) []string {
	d, err := internalDefinition(obj)
	if err != nil {
		return nil // validation tells
	}
	var formats, sets []string
	look := func(s *apiextensions.JSONSchemaProps) bool {
		if s.Format != "" {
			typed := &spec.Schema{SchemaProps: spec.SchemaProps{Format: s.Format, Type: []string{s.Type}}}
			for _, format := range schemavalidation.GetUnrecognizedFormats(typed, environment.DefaultCompatibilityVersion()) {
				formats = append(formats, fmt.Sprintf("unrecognized format %q", format))
			}
		}
		if s.XListType != nil && *s.XListType == "set" && s.Items != nil && s.Items.Schema != nil && slices.Contains([]string{"object", "array"}, s.Items.Schema.Type) {
			sets = append(sets, fmt.Sprintf("x-kubernetes-list-type: set for items of type %q is not supported by server-side apply or CEL validation rules", s.Items.Schema.Type))
		}
		return false // go on
	}
	if d.Spec.Validation != nil && d.Spec.Validation.OpenAPIV3Schema != nil {
		validation.SchemaHas(d.Spec.Validation.OpenAPIV3Schema, look)
	}
	for _, v := range d.Spec.Versions {
		if v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
			validation.SchemaHas(v.Schema.OpenAPIV3Schema, look)
		}
	}
	slices.Sort(sets)
	return append(formats, slices.Compact(sets)...)
}
