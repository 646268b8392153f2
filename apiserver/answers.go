package apiserver

import (
	"context"
	"net/http"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kontiki/apiserver/registry"
)

// serveAnswer serves the rows whose objects are not stored: see registry.Answers.
func (s *Server) serveAnswer(w http.ResponseWriter, r *http.Request, t *target) error {
	if t.verb == "create" {
		return s.answerQuestion(w, r, t)
	}
	f, err := negotiate(r, t.verb, t.binary())
	if err != nil {
		return err
	}
	objects := t.resource.Answers.List(r.Context(), answering{s})
	if t.verb == "get" {
		objects = slices.DeleteFunc(objects, func(o runtime.Object) bool { return accessor(o).GetName() != t.name })
		if len(objects) == 0 {
			return apierrors.NewNotFound(t.groupResource(), t.name)
		}
	}
	if f.as == asTable {
		return writeRows(w, r, t, f, http.StatusOK, metav1.ListMeta{}, objects)
	}
	for i := range objects {
		objects[i] = withKind(objects[i], t.resource.GroupVersionKind())
	}
	if t.verb == "get" {
		return writeObject(w, r, f, http.StatusOK, objects[0])
	}
	list := t.resource.NewList()
	if err := meta.SetList(list, objects); err != nil {
		return err
	}
	return writeObject(w, r, f, http.StatusOK, withKind(list, t.resource.GroupVersion().WithKind(t.resource.Kind+"List")))
}

// answerQuestion is POST: a review or a command in the body.
func (s *Server) answerQuestion(w http.ResponseWriter, r *http.Request, t *target) error {
	f, err := negotiate(r, verbAsk, t.binary())
	if err != nil {
		return err
	}
	options, err := createOptions(r)
	if err != nil {
		return err
	}
	obj, err := s.decodeBody(r, t, t.resource.GroupVersionKind(), t.resource.New, options.validation)
	if err != nil {
		return err
	}
	if err := t.fitNamespace(accessor(obj)); err != nil {
		return err
	}
	request := t.admission(r.Context(), obj, nil, options)
	if err := s.mutate(r.Context(), request); err != nil {
		return err
	}
	var faults field.ErrorList
	if validate := t.resource.Strategy.Validate; validate != nil {
		faults = validate(r.Context(), obj)
	}
	if err := t.invalid(accessor(obj).GetName(), faults); err != nil {
		return err
	}
	if err := s.judge(r.Context(), request); err != nil {
		return err
	}
	answer, err := t.resource.Answers.Create(r.Context(), answering{s}, obj)
	if err != nil {
		return err
	}
	if status, ok := answer.(*metav1.Status); ok {
		status.TypeMeta = statusTypeMeta
		return writeObject(w, r, f, http.StatusCreated, status)
	}
	return writeObject(w, r, f, http.StatusCreated, withKind(answer, t.resource.GroupVersionKind()))
}

// answering is the server as its rows see it.
type answering struct{ s *Server }

var _ registry.Server = answering{}

// Authenticate judges tokens as withAuthentication does.
func (a answering) Authenticate(ctx context.Context, token string, audiences []string) (*authenticationv1.UserInfo, []string, error) {
	user, good, err := a.s.tokenUser(ctx, token, audiences)
	if err != nil {
		return nil, nil, err
	}
	info := user.info()
	return &info, good, nil
}

// Authorize asks the authorizer that also decides on requests.
func (a answering) Authorize(ctx context.Context, action authorizationv1.SubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewStatus {
	return a.s.review(ctx, &action)
}

// Rules lists what the same authorizer allows.
func (a answering) Rules(_ context.Context, info authenticationv1.UserInfo, namespace string) authorizationv1.SubjectRulesReviewStatus {
	return a.s.rulesOf(userOf(info), namespace)
}

// Command is a POST to a subresource. Whoever may send the command by its old name may send it.
func (a answering) Command(ctx context.Context, resource schema.GroupVersionResource, namespace, name, subresource string, body runtime.Object) error {
	row := a.s.table.Lookup(resource)
	t := &target{
		verb: "create", resource: row, sub: row.Subresource(subresource), store: a.s.storeOf(row),
		namespace: namespace, name: name,
	}
	return a.s.command(ctx, t, body, writeOptions{})
}

// StoreHealth reads the store's revision consistently, which needs a quorum.
func (a answering) StoreHealth(ctx context.Context) error {
	_, err := a.s.kv.Revision(ctx)
	return err
}
