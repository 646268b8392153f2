package apiserver

import (
	"context"
	"errors"
	"net/http"

	"golang.org/x/sync/errgroup"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kontiki/apiserver/storage"
	"kontiki/watch"
)

// deletePageSize is how many objects deletecollection reads at a time.
const deletePageSize = 500

// deleteWorkers is how many objects a deletecollection deletes at the same time.
const deleteWorkers = 16

// serveDeleteCollection is DELETE on a collection: every object that the selectors see is deleted as
// if it had been named, and the answer lists them. It stops soon after the first error.
func (s *Server) serveDeleteCollection(w http.ResponseWriter, r *http.Request, t *target) error {
	f, err := negotiate(r, "list", t.binary())
	if err != nil {
		return err
	}
	list, err := listOptions(r, t)
	if err != nil {
		return err
	}
	options, err := s.deleteOptions(r)
	if err != nil {
		return err
	}
	t.warnOfDeletion(r.Context(), options)
	query := storage.ListOptions{
		Selection: selection(t, list), ResourceVersion: list.ResourceVersion, ResourceVersionMatch: list.ResourceVersionMatch,
		Limit: list.Limit, Continue: list.Continue,
	}
	if query.Limit == 0 {
		query.Limit = deletePageSize
	}
	deleted := &storage.List{}
	for {
		page, err := t.store.List(r.Context(), query)
		if err != nil {
			return t.storeError(err, "")
		}
		if err := s.deletePage(r.Context(), t, page.Items, options); err != nil {
			return err
		}
		deleted.Items, deleted.Revision = append(deleted.Items, page.Items...), page.Revision
		if page.Continue == "" || list.Limit > 0 {
			deleted.Continue, deleted.RemainingItemCount = page.Continue, page.RemainingItemCount
			return s.writeList(w, r, t, f, deleted)
		}
		query.Continue, query.ResourceVersion, query.ResourceVersionMatch = page.Continue, "", ""
	}
}

// deletePage deletes several at a time: each waits for its own raft entry to be on disk, and entries that wait together are
// written together.
func (s *Server) deletePage(ctx context.Context, t *target, page []*watch.Object, options *metav1.DeleteOptions) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(deleteWorkers)
	for _, obj := range page {
		group.Go(func() (err error) {
			defer s.recoverInto(ctx, &err)
			return s.deleteListed(ctx, t, obj, options)
		})
	}
	return group.Wait()
}

// deleteListed deletes one of a collection. Somebody else may have done so since the list.
func (s *Server) deleteListed(ctx context.Context, t *target, obj *watch.Object, options *metav1.DeleteOptions) error {
	one := *t
	m := accessor(obj.Object())
	one.namespace, one.name = m.GetNamespace(), m.GetName()
	_, err := s.delete(ctx, &one, options.DeepCopy(), s.judgeDeletion(ctx, &one, options))
	if apierrors.IsNotFound(err) || errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	return err
}
