package customresources

import (
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	openapiv2 "k8s.io/apiextensions-apiserver/pkg/controller/openapi/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

var (
	typeMetaDocs   = metav1.TypeMeta{}.SwaggerDoc()
	objectMetaDocs = metav1.PartialObjectMetadata{}.SwaggerDoc()
)

// model is a row's Model. Where unknown fields are kept, or where there is no schema, version 2 says no more than that
// it is an object: kubectl takes what a schema does not name for an error.
func (s *served) model(v2 bool, refer func(reflect.Type) spec.Schema) (*spec.Schema, error) {
	shown, err := s.shownSchema(v2)
	if err != nil {
		return nil, err
	}
	if shown == nil {
		return &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}}}, nil
	}
	shown = shown.Unfold()
	if v2 {
		shown = openapiv2.ToStructuralOpenAPIV2(shown)
	}
	out := shown.ToKubeOpenAPI()
	m := modeller{v2: v2, refer: refer}
	m.addMeta(out)
	m.addEmbedded(out)
	return out, nil
}

// shownSchema reads the schema anew, and nil where there is nothing to show: documents are made once, and that somebody
// reads them is no reason to keep what is compiled for objects.
func (s *served) shownSchema(v2 bool) (*structural.Structural, error) {
	d, err := s.config.Load()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(d.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == s.version })
	if i < 0 {
		return nil, ErrUnknownVersion
	}
	schema, err := internalSchema(&d.Spec.Versions[i])
	if err != nil || schema == nil {
		return nil, err
	}
	made, err := structural.NewStructural(schema)
	if err != nil {
		return nil, err
	}
	made = made.DeepCopy()
	if v2 && (d.Spec.PreserveUnknownFields || made.XPreserveUnknownFields) || len(structural.ValidateStructural(nil, made)) > 0 {
		return nil, nil
	}
	return made, defaulting.PruneDefaults(made)
}

// modeller adds what objects have whether or not their schema names it.
type modeller struct {
	v2    bool
	refer func(reflect.Type) spec.Schema
}

func (m modeller) addMeta(s *spec.Schema) {
	s.SetProperty("apiVersion", *spec.StringProperty().WithDescription(typeMetaDocs["apiVersion"]))
	s.SetProperty("kind", *spec.StringProperty().WithDescription(typeMetaDocs["kind"]))
	metadata := m.refer(reflect.TypeFor[metav1.ObjectMeta]())
	if !m.v2 { // in OpenAPI 3.0 a reference may have no siblings
		metadata = spec.Schema{SchemaProps: spec.SchemaProps{AllOf: []spec.Schema{metadata}}}
	}
	s.SetProperty("metadata", *metadata.WithDescription(objectMetaDocs["metadata"]))
}

// addEmbedded does the same for the resources within.
func (m modeller) addEmbedded(s *spec.Schema) {
	if s == nil {
		return
	}
	for name, property := range s.Properties {
		m.addEmbedded(&property)
		s.Properties[name] = property
	}
	if s.Items != nil {
		m.addEmbedded(s.Items.Schema)
	}
	if s.AdditionalProperties != nil {
		m.addEmbedded(s.AdditionalProperties.Schema)
	}
	if keeps, _ := s.Extensions.GetBool("x-kubernetes-preserve-unknown-fields"); keeps && m.v2 {
		return
	}
	if embedded, _ := s.Extensions.GetBool("x-kubernetes-embedded-resource"); embedded {
		m.addMeta(s)
		for _, name := range []string{"kind", "apiVersion"} {
			if !slices.Contains(s.Required, name) {
				s.Required = append(s.Required, name)
			}
		}
	}
}
