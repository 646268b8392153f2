package registry

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func extensionRows() []*Resource { return []*Resource{customResourceDefinitions()} }

// customResourceDefinitions are the definitions alone; package customresources makes rows of them. A definition that
// is deleted stays until its instances are gone, which the server sees to.
func customResourceDefinitions() *Resource {
	gv := apiextensionsv1.SchemeGroupVersion
	r := newRow[apiextensionsv1.CustomResourceDefinition, apiextensionsv1.CustomResourceDefinitionList](gv, "customresourcedefinitions", "CustomResourceDefinition")
	r.Prefix = "/registry/apiextensions.k8s.io/customresourcedefinitions" // the one built-in kind whose keys have their group
	r.Namespaced = false
	r.ShortNames, r.Categories = []string{"crd", "crds"}, []string{"api-extensions"}
	r.Strategy = Strategy{
		Default:          defaulter(apiextensionsv1.SetObjectDefaults_CustomResourceDefinition),
		PrepareForCreate: preparer(prepareDefinition),
		PrepareForUpdate: updatePreparer(func(d, _ *apiextensionsv1.CustomResourceDefinition) { noteStoredVersion(d) }),
		ValidateName:     func(string, bool) []string { return nil }, // as the definition's own names want it, below
		Validate:         definitionFaults(validation.ValidateCustomResourceDefinition, true),
		ValidateUpdate:   definitionUpdateFaults(validation.ValidateCustomResourceDefinitionUpdate),
		UpdateRulesOnly:  true,
		AnyFinalizer:     true,
		Warnings:         definitionWarnings,

		NeedsResourceVersion: true,
		ReturnDeleted:        true,
		KeepOnDelete: func(obj runtime.Object) bool {
			return obj.(*apiextensionsv1.CustomResourceDefinition).DeletionTimestamp == nil // then its finalizer does
		},
		PrepareForDelete: defaulter(beginEndOfDefinition),
		Claims:           definitionClaims,
		Allocate:         acceptNames,
	}
	status := statusOf(r, func(d, old *apiextensionsv1.CustomResourceDefinition) { d.Spec = old.Spec })
	status.Validate = definitionUpdateFaults(validation.ValidateUpdateCustomResourceDefinitionStatus)
	r.Subresources = []Subresource{status}
	r.Columns = columns([]string{"Name", "Scope", "Versions", "Created At"}, "Group", "Kind", "ShortNames", "Established:boolean")
	r.Columns[3].Type = "date"
	r.Row = cells(definitionRow)
	return r
}

func prepareDefinition(d *apiextensionsv1.CustomResourceDefinition) {
	d.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	noteStoredVersion(d)
}

// noteStoredVersion remembers every version that objects were ever stored in, until somebody who has migrated them
// takes it out of the status.
func noteStoredVersion(d *apiextensionsv1.CustomResourceDefinition) {
	storage, err := apihelpers.GetCRDStorageVersion(d)
	if err == nil && !apihelpers.IsStoredVersion(d, storage) {
		d.Status.StoredVersions = append(d.Status.StoredVersions, storage)
	}
}

// beginEndOfDefinition is what a deletion starts with: nobody may create instances any more.
func beginEndOfDefinition(d *apiextensionsv1.CustomResourceDefinition) {
	if !apihelpers.CRDHasFinalizer(d, apiextensionsv1.CustomResourceCleanupFinalizer) {
		d.Finalizers = append(d.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer)
	}
	apihelpers.SetCRDCondition(d, apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Terminating, Status: apiextensionsv1.ConditionTrue, Reason: "InstanceDeletionPending",
		Message: "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
	})
}

// internalDefinition is the form in which Kubernetes judges definitions.
func internalDefinition(obj runtime.Object) (*apiextensions.CustomResourceDefinition, error) {
	out := &apiextensions.CustomResourceDefinition{}
	in := obj.(*apiextensionsv1.CustomResourceDefinition)
	err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(in, out, nil)
	forgetFieldsOfBrokenSchemas(out)
	return out, err
}

// forgetFieldsOfBrokenSchemas takes selectable fields away from schemas that are not structural. Kubernetes' validation
// looks for the fields in the structural form even where there is none, and panics (1.37.2); what is wrong with the
// schema it has told by then.
func forgetFieldsOfBrokenSchemas(d *apiextensions.CustomResourceDefinition) {
	broken := func(s *apiextensions.CustomResourceValidation) bool {
		if s == nil || s.OpenAPIV3Schema == nil {
			return false
		}
		_, err := structural.NewStructural(s.OpenAPIV3Schema)
		return err != nil
	}
	// Fields and schemas that all versions share are in the spec itself.
	if len(d.Spec.SelectableFields) > 0 && broken(d.Spec.Validation) {
		d.Spec.SelectableFields = nil
	}
	for i := range d.Spec.Versions {
		v := &d.Spec.Versions[i]
		if len(v.SelectableFields) > 0 && (broken(v.Schema) || broken(d.Spec.Validation)) {
			v.SelectableFields = nil
		}
		if len(d.Spec.SelectableFields) > 0 && broken(v.Schema) {
			d.Spec.SelectableFields = nil
		}
	}
}

// definitionFaults runs Kubernetes' own validation. What that says of the metadata the generic path says too, but for
// the name, and for the approval that groups of Kubernetes need.
func definitionFaults(judge func(context.Context, *apiextensions.CustomResourceDefinition) field.ErrorList, withName bool) func(context.Context, runtime.Object) field.ErrorList {
	return func(ctx context.Context, obj runtime.Object) field.ErrorList {
		d, err := internalDefinition(obj)
		if err != nil {
			return field.ErrorList{field.InternalError(nil, err)}
		}
		return slices.DeleteFunc(judge(ctx, d), func(f *field.Error) bool {
			approval := f.Field == field.NewPath("metadata", "annotations").Key(apiextensionsv1.KubeAPIApprovedAnnotation).String()
			return strings.HasPrefix(f.Field, "metadata.") && !approval && !(withName && f.Field == "metadata.name" && d.Name != "")
		})
	}
}

func definitionUpdateFaults(judge func(ctx context.Context, d, old *apiextensions.CustomResourceDefinition) field.ErrorList) func(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return func(ctx context.Context, obj, old runtime.Object) field.ErrorList {
		before, err := internalDefinition(old)
		if err != nil {
			return field.ErrorList{field.InternalError(nil, err)}
		}
		return definitionFaults(func(ctx context.Context, d *apiextensions.CustomResourceDefinition) field.ErrorList {
			return judge(ctx, d, before)
		}, false)(ctx, obj)
	}
}

func definitionRow(d *apiextensionsv1.CustomResourceDefinition, _ time.Time) []any {
	var versions []string
	for _, v := range d.Spec.Versions {
		switch {
		case v.Served && v.Storage:
			versions = append(versions, v.Name+"(storage)")
		case v.Served:
			versions = append(versions, v.Name)
		}
	}
	slices.Sort(versions)
	return []any{d.Name, string(d.Spec.Scope), strings.Join(versions, ","), d.CreationTimestamp.UTC().Format(time.RFC3339),
		d.Spec.Group, d.Spec.Names.Kind, strings.Join(d.Spec.Names.ShortNames, ","),
		apihelpers.IsCRDConditionTrue(d, apiextensionsv1.Established)}
}
