package apiserver

import (
	"cmp"
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kontiki/apiserver/storage"
)

// serveList is GET on a collection.
func (s *Server) serveList(w http.ResponseWriter, r *http.Request, t *target) error {
	f, err := negotiate(r, t.verb, t.binary())
	if err != nil {
		return err
	}
	options, err := listOptions(r, t)
	if err != nil {
		return err
	}
	found, err := t.store.List(r.Context(), storage.ListOptions{
		Selection:            selection(t, options),
		ResourceVersion:      options.ResourceVersion,
		ResourceVersionMatch: options.ResourceVersionMatch,
		Limit:                options.Limit,
		Continue:             options.Continue,
	})
	if err != nil {
		return t.storeError(err, "")
	}
	return s.writeList(w, r, t, f, found)
}

// selection narrows a list or watch to what the request may see. A field selector on the name alone
// is the usual way to watch one object, so the store is told.
func selection(t *target, options *internalversion.ListOptions) storage.Selection {
	chosen := storage.Selection{Namespace: t.namespace, Name: t.name, Labels: options.LabelSelector, Fields: options.FieldSelector}
	if options.FieldSelector != nil {
		if name, ok := options.FieldSelector.RequiresExactMatch("metadata.name"); ok && name != "" {
			chosen.Name = name
		}
		if namespace, ok := options.FieldSelector.RequiresExactMatch("metadata.namespace"); ok && chosen.Namespace == "" && t.resource.Namespaced {
			chosen.Namespace = namespace
		}
	}
	if chosen.Fields != nil && chosen.Fields.Empty() {
		chosen.Fields = nil
	}
	return chosen
}

func (s *Server) writeList(w http.ResponseWriter, r *http.Request, t *target, f form, list *storage.List) error {
	listMeta := metav1.ListMeta{
		ResourceVersion:    revisionString(list.Revision),
		Continue:           list.Continue,
		RemainingItemCount: list.RemainingItemCount,
	}
	if f.as == asTable {
		return s.writeTable(w, r, t, f, http.StatusOK, listMeta, list.Items)
	}
	e := encoderFor(f, t.resource.GroupVersionKind())
	e.named = e.named || t.resource.Model != nil
	pieces, err := e.list(listKind(t, f), listMeta, list.Items)
	if err != nil {
		return err
	}
	return writeBytes(w, r, f.contentType(), http.StatusOK, pieces...)
}

func listKind(t *target, f form) schema.GroupVersionKind {
	if f.as == asPartialList {
		return schema.GroupVersionKind{Group: metav1.GroupName, Version: f.version, Kind: string(asPartialList)}
	}
	return t.resource.GroupVersion().WithKind(cmp.Or(t.resource.ListKind, t.resource.Kind+"List"))
}

// revisionString is empty for what has no revision: the result of a dry run.
func revisionString(revision int64) string {
	if revision == 0 {
		return ""
	}
	return strconv.FormatInt(revision, 10)
}
