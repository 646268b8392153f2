package customresources

import (
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/runtime"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Built-in objects lose what their Go type has no field for when they are decoded. Custom resources have no Go type, so
// that the same is done by their schema: unknown fields go, malformed metadata is refused, nulls go where the schema
// does not allow them.

// coerceBody is a Strategy's Coerce.
func (s *served) coerceBody(obj runtime.Object) (unknown []string, err error) {
	c, err := s.schemaOf(s.version)
	if err != nil {
		return nil, err
	}
	return c.coerce(obj.(*unstructured.Unstructured), coercion{report: true})
}

// coercion is how an object is made to fit its schema.
type coercion struct {
	report bool // return the paths of unknown fields
	// repair drops metadata that is malformed instead of refusing it: such objects are older than the rule.
	repair bool
}

// coerce changes u in place.
func (c *compiled) coerce(u *unstructured.Unstructured, how coercion) (unknown []string, err error) {
	apiVersion, kind := u.GetAPIVersion(), u.GetKind()
	metadata, found, unknown, err := objectmeta.GetObjectMetaWithOptions(u.Object, objectmeta.ObjectMetaOptions{
		DropMalformedFields: how.repair, ReturnUnknownFieldPaths: how.report,
	})
	if err != nil {
		return nil, err
	}
	if !c.preserveUnknown {
		unknown = append(unknown, pruning.PruneWithOptions(u.Object, c.schema, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: how.report})...)
		defaulting.PruneNonNullableNullsWithoutDefaults(u.Object, c.schema)
	}
	fault, more := objectmeta.CoerceWithOptions(nil, u.Object, c.schema, false, objectmeta.CoerceOptions{
		DropInvalidFields: how.repair, ReturnUnknownFieldPaths: how.report,
	})
	if fault != nil {
		return nil, fault
	}
	// What every object has need not be in its schema.
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	if how.repair && metadata.Generation == 0 {
		metadata.Generation = 1
	}
	if found {
		err = objectmeta.SetObjectMeta(u.Object, metadata)
	}
	return append(unknown, more...), err
}

// setDefaults is a Strategy's Default. A schema that cannot be compiled has been reported by then.
func (s *served) setDefaults(obj runtime.Object) {
	if c, err := s.schemaOf(s.version); err == nil {
		c.setDefaults(obj.(*unstructured.Unstructured))
	}
}

func (c *compiled) setDefaults(u *unstructured.Unstructured) {
	if c.schema != nil {
		defaulting.Default(u.Object, c.schema)
	}
}
