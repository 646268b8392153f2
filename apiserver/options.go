package apiserver

import (
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	internalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	internalvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"kontiki/apiserver/ownership"
)

// parseQuery reads query parameters into one of apimachinery's option objects.
func parseQuery(r *http.Request, into runtime.Object) error {
	if err := internalscheme.ParameterCodec.DecodeParameters(r.URL.Query(), metav1.SchemeGroupVersion, into); err != nil {
		return badRequest("%v", err)
	}
	return nil
}

// writeOptions are what the writing verbs have in common.
type writeOptions struct {
	dryRun     bool
	manager    string               // who the changed fields belong to
	validation string               // what to do about unknown and duplicate fields: Ignore, Warn or Strict
	force      bool                 // apply only: take fields over from other managers
	asked      metav1.UpdateOptions // what the client has sent of these, for admission
}

func newWriteOptions(r *http.Request, dryRun []string, manager, fieldValidation string) writeOptions {
	if fieldValidation == "" {
		fieldValidation = metav1.FieldValidationWarn
	}
	return writeOptions{
		dryRun: len(dryRun) > 0, manager: ownership.ManagerName(manager, r.UserAgent()), validation: fieldValidation,
		asked: metav1.UpdateOptions{DryRun: dryRun, FieldManager: manager, FieldValidation: fieldValidation},
	}
}

func createOptions(r *http.Request) (writeOptions, error) {
	o := metav1.CreateOptions{}
	if err := parseQuery(r, &o); err != nil {
		return writeOptions{}, err
	}
	err := invalidOptions("CreateOptions", validation.ValidateCreateOptions(&o))
	return newWriteOptions(r, o.DryRun, o.FieldManager, o.FieldValidation), err
}

func updateOptions(r *http.Request) (writeOptions, error) {
	o := metav1.UpdateOptions{}
	if err := parseQuery(r, &o); err != nil {
		return writeOptions{}, err
	}
	err := invalidOptions("UpdateOptions", validation.ValidateUpdateOptions(&o))
	return newWriteOptions(r, o.DryRun, o.FieldManager, o.FieldValidation), err
}

func patchOptions(r *http.Request, kind types.PatchType) (writeOptions, error) {
	o := metav1.PatchOptions{}
	if err := parseQuery(r, &o); err != nil {
		return writeOptions{}, err
	}
	err := invalidOptions("PatchOptions", validation.ValidatePatchOptions(&o, kind))
	out := newWriteOptions(r, o.DryRun, o.FieldManager, o.FieldValidation)
	out.force = o.Force != nil && *o.Force
	return out, err
}

// listOptions reads the options of list, watch and deletecollection.
func listOptions(r *http.Request, t *target) (*internalversion.ListOptions, error) {
	o := &internalversion.ListOptions{}
	if err := parseQuery(r, o); err != nil {
		return nil, err
	}
	o.Watch = t.verb == "watch"
	internalversion.SetListOptionsDefaults(o, true) // a watch from nowhere is a streamed list
	if err := invalidOptions("ListOptions", internalvalidation.ValidateListOptions(o, true)); err != nil {
		return nil, err
	}
	return o, nil
}
