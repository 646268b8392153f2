package registry

import (
	"strings"
	"time"

	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// storageMigrationRows: a request to write all objects of a resource anew. Not yet: nothing does it.
func storageMigrationRows() []*Resource {
	r := newRow[storagemigrationv1.StorageVersionMigration, storagemigrationv1.StorageVersionMigrationList](
		storagemigrationv1.SchemeGroupVersion, "storageversionmigrations", "StorageVersionMigration")
	r.Namespaced = false
	r.Strategy = Strategy{
		NoGeneration:         true,
		NeedsResourceVersion: true,
		Validate:             validator(validateMigration),
		ValidateUpdate: updateValidator(func(m, old *storagemigrationv1.StorageVersionMigration) field.ErrorList {
			return immutable(specPath, m.Spec, old.Spec)
		}),
	}
	r.Subresources = []Subresource{unjudged(sealed(statusOf(r, func(m, old *storagemigrationv1.StorageVersionMigration) { m.Spec = old.Spec })))}
	r.Columns = columns([]string{"Name", "Resource", "Status"})
	r.Row = cells(func(m *storagemigrationv1.StorageVersionMigration, _ time.Time) []any {
		state := "Unknown"
		for _, c := range m.Status.Conditions {
			switch storagemigrationv1.MigrationConditionType(c.Type) {
			case storagemigrationv1.MigrationRunning, storagemigrationv1.MigrationSucceeded, storagemigrationv1.MigrationFailed:
				if c.Status == metav1.ConditionTrue {
					state = c.Type
				}
			}
		}
		return []any{m.Name, m.Spec.Resource.String(), state}
	})
	return []*Resource{r}
}

func validateMigration(m *storagemigrationv1.StorageVersionMigration) field.ErrorList {
	var faults field.ErrorList
	path, resource := specPath.Child("resource"), m.Spec.Resource
	if resource.Resource == "" {
		faults = append(faults, field.Required(path.Child("resource"), "resource is required to be set"))
	} else if m := validation.IsDNS1035Label(resource.Resource); len(m) > 0 {
		faults = append(faults, field.Invalid(path.Child("resource"), resource.Resource, strings.Join(m, ",")))
	}
	if resource.Group != "" {
		if m := validation.IsDNS1123Subdomain(resource.Group); len(m) > 0 {
			faults = append(faults, field.Invalid(path.Child("group"), resource.Group, strings.Join(m, ",")))
		}
	}
	return faults
}
