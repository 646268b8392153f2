package apiserver

import (
	"context"
	"fmt"
	"strconv"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"kontiki/apiserver/admission"
	"kontiki/apiserver/admission/dynamic"
	"kontiki/apiserver/admission/policy"
	"kontiki/apiserver/admission/webhook"
	"kontiki/apiserver/nodeproxy"
	"kontiki/apiserver/rbac"
)

// Webhooks are objects of the cluster: every server follows them, so that a new one is in use everywhere a moment later.

var (
	mutatingWebhooks   = admissionv1.SchemeGroupVersion.WithResource("mutatingwebhookconfigurations")
	validatingWebhooks = admissionv1.SchemeGroupVersion.WithResource("validatingwebhookconfigurations")
)

var webhookObjects = []schema.GroupVersionResource{mutatingWebhooks, validatingWebhooks}

// dynamicAdmission are the plugins that the cluster's objects configure, in Kubernetes' order.
func (s *Server) dynamicAdmission() []admission.Plugin {
	matcher := &dynamic.Matcher{Objects: lookup{s}, Versions: newKinds(s.table)}
	s.webhooks = webhook.New(webhook.Config{
		Matcher: matcher, Authorizer: asker{s}, Endpoint: s.endpointOf, Load: s.readWebhooks, Log: s.log,
	})
	s.policies = policy.New(policy.Config{
		Matcher: matcher, Authorizer: asker{s}, Params: s.paramsOf, Types: s.fieldsOf, Typer: s.table.Scheme(),
		Load: s.readAdmissionPolicies, Log: s.log,
	})
	return []admission.Plugin{
		{Name: policy.MutatingPlugin, Impl: s.policies.Mutator()},
		{Name: webhook.MutatingPlugin, Impl: s.webhooks.Mutator()},
		{Name: policy.ValidatingPlugin, Impl: s.policies.Validator()},
		{Name: webhook.ValidatingPlugin, Impl: s.webhooks.Validator()},
	}
}

// loadWebhooks takes the configurations of the cluster into use.
func (s *Server) loadWebhooks(ctx context.Context) (revision int64, err error) {
	found, revision, err := s.listWebhooks(ctx)
	if err == nil {
		s.webhooks.Set(found)
	}
	return revision, err
}

func (s *Server) readWebhooks(ctx context.Context) (webhook.Configurations, error) {
	found, _, err := s.listWebhooks(ctx)
	return found, err
}

func (s *Server) listWebhooks(ctx context.Context) (found webhook.Configurations, revision int64, err error) {
	if found.Mutating, revision, err = listAll[*admissionv1.MutatingWebhookConfiguration](ctx, s.storeOf(s.table.Lookup(mutatingWebhooks))); err != nil {
		return found, 0, err
	}
	found.Validating, _, err = listAll[*admissionv1.ValidatingWebhookConfiguration](ctx, s.storeOf(s.table.Lookup(validatingWebhooks)))
	return found, revision, err
}

// endpointOf finds an endpoint of a Service for a webhook. It does not need the node's service proxy, which a server without
// an agent lacks.
func (s *Server) endpointOf(ctx context.Context, namespace, name string, port int32) (string, error) {
	found, err := s.find(ctx, corev1.SchemeGroupVersion.WithResource("services"), namespace, name)
	if apierrors.IsNotFound(err) {
		return "", fmt.Errorf("service %q not found", name)
	}
	if err != nil {
		return "", err
	}
	service := found.(*corev1.Service)
	slices, err := s.slicesOf(ctx, service, "0")
	if err != nil {
		return "", err
	}
	return nodeproxy.Endpoint(service, slices, name, strconv.Itoa(int(port)))
}

// asker lets expressions ask whether a user may do something.
type asker struct{ s *Server }

// Authorize implements dynamic.Authorizer.
func (a asker) Authorize(ctx context.Context, ask authorizer.Attributes) (authorizer.Decision, string, error) {
	action := rbac.Request{Verb: ask.GetVerb(), Path: ask.GetPath()}
	if ask.IsResourceRequest() {
		action = rbac.Request{
			Verb: ask.GetVerb(), Group: ask.GetAPIGroup(), Version: ask.GetAPIVersion(), Resource: ask.GetResource(),
			Subresource: ask.GetSubresource(), Namespace: ask.GetNamespace(), Name: ask.GetName(),
		}
		// Selectors that cannot be read are nil, and allow nothing more.
		action.Fields, _ = ask.GetFieldSelector()
		action.Labels, _ = ask.GetLabelSelector()
	}
	reason, ok := a.s.authorize(ctx, whoIs(ask.GetUser()), action)
	if ok {
		return authorizer.DecisionAllow, reason, nil
	}
	return authorizer.DecisionNoOpinion, reason, nil
}

func whoIs(info user.Info) User {
	return User{Name: info.GetName(), UID: info.GetUID(), Groups: info.GetGroups(), Extra: info.GetExtra()}
}
