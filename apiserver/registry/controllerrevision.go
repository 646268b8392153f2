package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// controllerRevisions are the history of stateful and daemon sets.
func controllerRevisions() *Resource {
	r := newRow[appsv1.ControllerRevision, appsv1.ControllerRevisionList](appsv1.SchemeGroupVersion, "controllerrevisions", "ControllerRevision")
	r.Strategy = Strategy{
		NoGeneration: true,
		Validate:     validator(validateControllerRevision),
		ValidateUpdate: updateValidator(func(c, old *appsv1.ControllerRevision) field.ErrorList {
			return immutable(field.NewPath("data"), c.Data, old.Data)
		}),
	}
	r.Columns = columns([]string{"Name", "Controller", "Revision", "Age"})
	r.Row = cells(func(c *appsv1.ControllerRevision, now time.Time) []any {
		owner := none
		if ref := metav1.GetControllerOf(c); ref != nil {
			group, _, _ := strings.Cut(ref.APIVersion, "/")
			owner = fmt.Sprintf("%s.%s/%s", strings.ToLower(ref.Kind), group, ref.Name)
		}
		return []any{c.Name, owner, c.Revision, age(&c.ObjectMeta, now)}
	})
	return r
}

// validateControllerRevision: the data is an object. What it was at first it stays, so that an update need not ask.
func validateControllerRevision(c *appsv1.ControllerRevision) field.ErrorList {
	faults := notNegative(field.NewPath("revision"), c.Revision)
	if exists(c) {
		return faults
	}
	path, raw := field.NewPath("data"), bytes.TrimSpace(c.Data.Raw)
	switch {
	case len(raw) == 0 || string(raw) == "null":
		faults = append(faults, field.Required(path, "data is mandatory"))
	case !json.Valid(raw):
		faults = append(faults, field.Invalid(path, "<value omitted>", "error parsing data"))
	case raw[0] != '{':
		faults = append(faults, field.Required(path, "data must be a valid JSON object"))
	}
	return faults
}
