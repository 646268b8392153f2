package apiserver

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kontiki/apiserver/admission"
	"kontiki/apiserver/audit"
	"kontiki/apiserver/registry"
	"kontiki/apiserver/storage"
)

// Every way to change something, or to reach what runs in the cluster, passes admission: prepare for what is created
// and updated, subresources and views included; admitPosted for commands and questions; judgeDeletion for what is deleted,
// each object of a collection; admitConnect (admitconnect.go) for streams. What the server writes by itself does not.

// prepare makes obj ready to be stored in place of old, which is nil when obj is created: admission completes it, the row's
// strategy and validation have their turn, and admission has the last word.
func (s *Server) prepare(ctx context.Context, t *target, obj, old runtime.Object, options writeOptions, beside *besides) error {
	if !admitted(ctx) {
		return t.prepareWrite(ctx, obj, old)
	}
	asView := t.sub != nil && t.sub.Project != nil // then mutators have seen the view, in throughView
	request := t.admission(ctx, obj, old, options)
	if !asView {
		if err := s.admission.Mutate(ctx, request); err != nil {
			return err
		}
	}
	if err := s.mayGrant(ctx, t, obj, old); err != nil {
		return err
	}
	if err := t.prepareWrite(ctx, obj, old); err != nil {
		return err
	}
	if asView {
		if err := t.showViews(request); err != nil {
			return err
		}
	}
	if err := s.admission.Validate(ctx, request); err != nil {
		return err
	}
	return beside.charge(ctx, request)
}

func (t *target) prepareWrite(ctx context.Context, obj, old runtime.Object) error {
	if old == nil {
		return t.prepareCreate(ctx, obj)
	}
	return t.prepareUpdate(ctx, obj, old)
}

// showViews puts the views of objects in their places.
func (t *target) showViews(request *admission.Request) error {
	for _, obj := range []*runtime.Object{&request.Object, &request.Old} {
		view, err := t.sub.Project.Get(*obj)
		if err != nil {
			return err
		}
		*obj = withKind(view, t.sub.Kind)
	}
	return nil
}

// admitted says whether a client asks, and not the server itself.
func admitted(ctx context.Context) bool { return registry.AskerOf(ctx).Username != "" }

// mutate has the request's object completed.
func (s *Server) mutate(ctx context.Context, request *admission.Request) error {
	if !admitted(ctx) {
		return nil
	}
	return s.admission.Mutate(ctx, request)
}

// judge has the last word on the request.
func (s *Server) judge(ctx context.Context, request *admission.Request) error {
	if !admitted(ctx) {
		return nil
	}
	return s.admission.Validate(ctx, request)
}

// admitPosted admits what is posted to a subresource: a command to its parent, or a question about it.
func (s *Server) admitPosted(ctx context.Context, t *target, body runtime.Object, options writeOptions) error {
	request := t.admission(ctx, body, nil, options)
	if err := s.mutate(ctx, request); err != nil {
		return err
	}
	return s.judge(ctx, request)
}

// judgeDeletion returns what admits the deletion of an object as it is at that moment.
func (s *Server) judgeDeletion(ctx context.Context, t *target, options *metav1.DeleteOptions) func(runtime.Object) error {
	return func(old runtime.Object) error {
		request := t.admission(ctx, nil, old, writeOptions{dryRun: len(options.DryRun) > 0})
		asked := options.DeepCopy()
		asked.SetGroupVersionKind(optionsKind("DeleteOptions"))
		request.Operation, request.Options = admission.Delete, asked
		if err := s.mutate(ctx, request); err != nil {
			return err
		}
		return s.judge(ctx, request)
	}
}

// admission is a request as plugins see it. Without an old object something is created, or posted.
func (t *target) admission(ctx context.Context, obj, old runtime.Object, options writeOptions) *admission.Request {
	request := &admission.Request{
		Operation: admission.Update, Kind: t.resource.GroupVersionKind(),
		Resource: t.resource.GroupVersionResource, Subresource: t.subName(),
		Namespace: t.namespace, Name: t.name,
		User: registry.AskerOf(ctx), DryRun: options.dryRun, Options: options.forUpdate(), Object: obj, Old: old,
		Warn:     func(text string) { warn(ctx, text) },
		Annotate: func(key, value string) { audit.Annotate(ctx, key, value) },
	}
	if t.sub != nil && t.sub.Kind.Kind != "" {
		request.Kind = t.sub.Kind
	}
	if old == nil {
		request.Operation, request.Options = admission.Create, options.forCreate()
	}
	if request.Name == "" && obj != nil {
		request.Name = accessor(obj).GetName()
	}
	if t.resource.Group == corev1.GroupName && t.resource.Resource == "namespaces" {
		request.Namespace = request.Name
	}
	return request
}

func (o writeOptions) forUpdate() *metav1.UpdateOptions {
	out := o.asked
	out.SetGroupVersionKind(optionsKind("UpdateOptions"))
	return &out
}

func (o writeOptions) forCreate() *metav1.CreateOptions {
	out := metav1.CreateOptions{DryRun: o.asked.DryRun, FieldManager: o.asked.FieldManager, FieldValidation: o.asked.FieldValidation}
	out.SetGroupVersionKind(optionsKind("CreateOptions"))
	return &out
}

func optionsKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: metav1.GroupName, Version: "v1", Kind: kind}
}

// lookup is the server's storage as plugins see it.
type lookup struct{ s *Server }

var _ admission.Cluster = lookup{}

// Get implements admission.Objects.
func (l lookup) Get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (runtime.Object, error) {
	return l.s.find(ctx, resource, namespace, name)
}

// Allowed implements admission.Cluster.
func (l lookup) Allowed(ctx context.Context, user authenticationv1.UserInfo, action authorizationv1.ResourceAttributes) (ok bool, reason string) {
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	status := l.s.review(ctx, &authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra, ResourceAttributes: &action,
	})
	return status.Allowed, status.Reason
}

// ResourceOf implements admission.Cluster.
func (l lookup) ResourceOf(kind schema.GroupVersionKind) (resource schema.GroupVersionResource, namespaced, ok bool) {
	row := l.s.table.ByKind(kind)
	if row == nil {
		return schema.GroupVersionResource{}, false, false
	}
	return row.GroupVersionResource, row.Namespaced, true
}

// List implements admission.Objects. What was written through this server a moment ago counts; what was written through
// another one counts as soon as this one hears of it. Nobody is asked, so that a create costs no more than its own write.
func (l lookup) List(ctx context.Context, resource schema.GroupVersionResource, namespace string) ([]runtime.Object, error) {
	store := l.s.storeOf(l.s.table.Lookup(resource))
	list, err := store.List(ctx, storage.ListOptions{Selection: storage.Selection{Namespace: namespace}, ResourceVersion: store.Written()})
	if err != nil {
		return nil, err
	}
	out := make([]runtime.Object, len(list.Items))
	for i, item := range list.Items {
		out[i] = item.Object()
	}
	return out, nil
}
