package customresources

import (
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// family is what the versions of one definition have in common.
type family struct {
	config   Config
	name     string
	group    string
	kind     string
	plural   string
	versions map[string]bool // of the definition; true for those that are served
	webhook  bool            // versions are converted by one

	once     sync.Once // makes what follows
	compiled map[string]*compiled
	err      error
}

func newFamily(d *apiextensionsv1.CustomResourceDefinition, config Config) *family {
	f := &family{config: config, name: d.Name, group: d.Spec.Group, kind: d.Status.AcceptedNames.Kind, plural: d.Status.AcceptedNames.Plural, versions: map[string]bool{}}
	for _, v := range d.Spec.Versions {
		f.versions[v.Name] = v.Served
	}
	f.webhook = d.Spec.Conversion != nil && d.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
	return f
}

// compiled is what objects of one version are pruned, defaulted and judged by.
type compiled struct {
	schema           *structural.Structural // nil if the version has none
	preserveUnknown  bool                   // of definitions older than apiextensions.k8s.io/v1
	validator        validation.SchemaValidator
	statusValidator  validation.SchemaValidator // nil if the schema says nothing of the status
	rules            *cel.Validator             // nil if there are none
	selectableFields []apiextensionsv1.SelectableField
}

// schemaOf returns what is compiled of a version. All versions of a definition are compiled at once: whoever reads an
// object may need that in which it is stored.
func (f *family) schemaOf(version string) (*compiled, error) {
	f.once.Do(f.compile)
	if f.err != nil {
		return nil, f.err
	}
	c := f.compiled[version]
	if c == nil {
		return nil, fmt.Errorf("%s, version %s: %w", f.name, version, ErrUnknownVersion)
	}
	return c, nil
}

func (f *family) compile() {
	d, err := f.config.Load()
	if err != nil {
		f.err = err
		return
	}
	f.compiled = map[string]*compiled{}
	for _, v := range d.Spec.Versions {
		c, err := compileVersion(&v)
		if err != nil {
			f.err = fmt.Errorf("%s, version %s: %w: %w", f.name, v.Name, ErrUnusableSchema, err)
			return
		}
		c.preserveUnknown = d.Spec.PreserveUnknownFields
		f.compiled[v.Name] = c
	}
}

func compileVersion(v *apiextensionsv1.CustomResourceDefinitionVersion) (*compiled, error) {
	c := &compiled{selectableFields: v.SelectableFields}
	schema, err := internalSchema(v)
	if err != nil {
		return nil, err
	}
	if c.validator, _, err = validation.NewSchemaValidator(schema); err != nil {
		return nil, err
	}
	if schema == nil {
		return c, nil
	}
	if status, ok := schema.Properties["status"]; ok && v.Subresources != nil && v.Subresources.Status != nil {
		if c.statusValidator, _, err = validation.NewSchemaValidator(&status); err != nil {
			return nil, err
		}
	}
	made, err := structural.NewStructural(schema)
	if err != nil {
		return nil, err
	}
	c.schema = made.DeepCopy() // its defaults are shared with the definition, and are pruned next
	if err := defaulting.PruneDefaults(c.schema); err != nil {
		return nil, err
	}
	c.rules = cel.NewValidator(c.schema, true, celconfig.PerCallLimit)
	return c, nil
}

// internalSchema is the schema of a version in the form that everything is made from; nil if it has none.
func internalSchema(v *apiextensionsv1.CustomResourceDefinitionVersion) (*apiextensions.JSONSchemaProps, error) {
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return nil, nil
	}
	out := &apiextensions.CustomResourceValidation{}
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(v.Schema, out, nil); err != nil {
		return nil, err
	}
	return out.OpenAPIV3Schema, nil
}
