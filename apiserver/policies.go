package apiserver

import (
	"context"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"kontiki/apiserver/admission/policy"
)

// Admission policies are followed as webhooks are (hooks.go).

var (
	validatingPolicies       = admissionv1.SchemeGroupVersion.WithResource("validatingadmissionpolicies")
	validatingPolicyBindings = admissionv1.SchemeGroupVersion.WithResource("validatingadmissionpolicybindings")
	mutatingPolicies         = admissionv1.SchemeGroupVersion.WithResource("mutatingadmissionpolicies")
	mutatingPolicyBindings   = admissionv1.SchemeGroupVersion.WithResource("mutatingadmissionpolicybindings")
)

var admissionPolicyObjects = []schema.GroupVersionResource{validatingPolicies, validatingPolicyBindings, mutatingPolicies, mutatingPolicyBindings}

// loadAdmissionPolicies takes the policies of the cluster into use.
func (s *Server) loadAdmissionPolicies(ctx context.Context) (revision int64, err error) {
	found, revision, err := s.listAdmissionPolicies(ctx)
	if err == nil {
		s.policies.Set(found)
	}
	return revision, err
}

func (s *Server) readAdmissionPolicies(ctx context.Context) (policy.Objects, error) {
	found, _, err := s.listAdmissionPolicies(ctx)
	return found, err
}

// listAdmissionPolicies reads all. The revision is that of the first list: what changes after it is followed.
func (s *Server) listAdmissionPolicies(ctx context.Context) (found policy.Objects, revision int64, err error) {
	if found.Validating, revision, err = listAll[*admissionv1.ValidatingAdmissionPolicy](ctx, s.storeOf(s.table.Lookup(validatingPolicies))); err != nil {
		return found, 0, err
	}
	if found.ValidatingBindings, _, err = listAll[*admissionv1.ValidatingAdmissionPolicyBinding](ctx, s.storeOf(s.table.Lookup(validatingPolicyBindings))); err != nil {
		return found, 0, err
	}
	if found.Mutating, _, err = listAll[*admissionv1.MutatingAdmissionPolicy](ctx, s.storeOf(s.table.Lookup(mutatingPolicies))); err != nil {
		return found, 0, err
	}
	found.MutatingBindings, _, err = listAll[*admissionv1.MutatingAdmissionPolicyBinding](ctx, s.storeOf(s.table.Lookup(mutatingPolicyBindings)))
	return found, revision, err
}

// paramsOf finds the resource of a kind of parameters.
func (s *Server) paramsOf(kind schema.GroupVersionKind) (resource schema.GroupVersionResource, namespaced, ok bool) {
	row := s.table.ByKind(kind)
	if row == nil || row.Answers != nil {
		return resource, false, false
	}
	return row.GroupVersionResource, row.Namespaced, true
}

// fieldsOf knows the fields of a kind; nil if it is no kind of the table or of its subresources.
func (s *Server) fieldsOf(kind schema.GroupVersionKind) managedfields.TypeConverter {
	row := s.table.ByKind(kind)
	switch {
	case row != nil:
		types, err := s.owners.TypesOf(row)
		if err != nil {
			s.log.Warn("policies cannot change objects of a kind", "kind", kind, "err", err)
			return nil
		}
		return types
	case s.table.Scheme().Recognizes(kind):
		return s.owners.Types()
	}
	return nil
}
