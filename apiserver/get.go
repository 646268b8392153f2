package apiserver

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kontiki/apiserver/storage"
	"kontiki/watch"
)

// serveGet is GET on one object, or on a subresource that shows the whole of it.
func (s *Server) serveGet(w http.ResponseWriter, r *http.Request, t *target) error {
	f, err := negotiate(r, t.verb, t.binary())
	if err != nil {
		return err
	}
	obj, err := s.read(r, t)
	if err != nil {
		return err
	}
	return s.writeResult(w, r, t, f, http.StatusOK, obj)
}

// read fetches the target's object as a GET asks for it. resourceVersionMatch=Exact, which Kubernetes
// knows for lists only, shows the object as it was (time travel).
func (s *Server) read(r *http.Request, t *target) (*watch.Object, error) {
	options := metav1.GetOptions{}
	if err := parseQuery(r, &options); err != nil {
		return nil, err
	}
	exact := r.URL.Query().Get("resourceVersionMatch") == string(metav1.ResourceVersionMatchExact)
	obj, err := t.store.Get(r.Context(), t.namespace, t.name, storage.GetOptions{ResourceVersion: options.ResourceVersion, Exact: exact})
	return obj, t.storeError(err, t.name)
}

// writeResult answers with one object of the target's resource.
func (s *Server) writeResult(w http.ResponseWriter, r *http.Request, t *target, f form, code int, obj *watch.Object) error {
	if f.as == asTable {
		return s.writeTable(w, r, t, f, code, metav1.ListMeta{ResourceVersion: revisionString(obj.Revision)}, []*watch.Object{obj})
	}
	data, err := encoderFor(f, t.resource.GroupVersionKind()).object(obj)
	if err != nil {
		return err
	}
	return writeBytes(w, r, f.contentType(), code, data)
}

// find reads an object for the server's own use: from the cache if it is there, and consistently if
// it seems not to be. The result is shared.
func (s *Server) find(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (runtime.Object, error) {
	row := s.table.Lookup(resource)
	t := &target{resource: row, store: s.storeOf(row), namespace: namespace, name: name}
	found, err := t.store.Get(ctx, namespace, name, storage.GetOptions{ResourceVersion: "0"})
	if err != nil {
		found, err = t.store.Get(ctx, namespace, name, storage.GetOptions{})
	}
	if err != nil {
		return nil, t.storeError(err, name)
	}
	return found.Object(), nil
}
