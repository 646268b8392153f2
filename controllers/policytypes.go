package controllers

import (
	"context"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	applyadmission "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes"
	admissionlisters "k8s.io/client-go/listers/admissionregistration/v1"
	"k8s.io/client-go/restmapper"
)

// policyTypes tells the authors of a ValidatingAdmissionPolicy in its status where its expressions do not fit the types that
// they are for: a misspelt field is no error when the policy is written, and a refusal when it is evaluated
// (https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/#type-checking). It changes nothing
// of what the policy does. A request names a policy.
type policyTypes struct {
	client   kubernetes.Interface
	policies admissionlisters.ValidatingAdmissionPolicyLister
	types    celTypes
}

// policyTypesName is the field manager of the status; it is kube-controller-manager's name for the work.
const policyTypesName = "validatingadmissionpolicy-status"

func addPolicyTypes(m *manager) error {
	client, err := m.client(policyTypesName)
	if err != nil {
		return err
	}
	policies := m.shared.Admissionregistration().V1().ValidatingAdmissionPolicies()
	c := m.add(policyTypesName, 1, &policyTypes{
		client: client, policies: policies.Lister(),
		types: celTypes{
			schemas: &resolver.ClientDiscoveryResolver{Discovery: client.Discovery()},
			mapper:  restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery())),
		},
	})
	watch(c, policies.Informer(), func(p *admissionv1.ValidatingAdmissionPolicy) []Request { return []Request{named(p.Name)} })
	return nil
}

// Reconcile checks a generation once.
func (p *policyTypes) Reconcile(ctx context.Context, req Request) (Result, error) {
	policy, err := p.policies.Get(req.Name)
	if err != nil || policy.Generation <= policy.Status.ObservedGeneration {
		return Result{}, ignoreNotFound(err)
	}
	checked := applyadmission.TypeChecking()
	for _, warning := range p.types.check(policy) {
		checked.WithExpressionWarnings(applyadmission.ExpressionWarning().WithFieldRef(warning.FieldRef).WithWarning(warning.Warning))
	}
	_, err = p.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().ApplyStatus(ctx,
		applyadmission.ValidatingAdmissionPolicy(policy.Name).WithStatus(applyadmission.ValidatingAdmissionPolicyStatus().
			WithObservedGeneration(policy.Generation).WithTypeChecking(checked)),
		metav1.ApplyOptions{FieldManager: policyTypesName, Force: true})
	return Result{}, ignoreNotFound(err)
}
