package apiserver

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kontiki/apiserver/objectdiff"
	"kontiki/apiserver/registry"
	"kontiki/apiserver/storage"
	"kontiki/watch"
)

// GET …/NAME/history lists the revisions of an object that the store still has: what changed, when, and who
// asked for it. Every stored resource has it; discovery does not name it, as Kubernetes has no such thing.
// Who wrote an object is more than the object shows, so it is a subresource for the authorizer
// (pods/history, verb get): who may get pods does not see it unless a role says so.
//
// The raft log says who asked (user, agent, request id). It is shorter than the history: where it does not reach, and with
// a store outside, the manager and the time come from the object's managedFields, and the rest is unknown.

// historySubresource is below every stored resource that has none of that name.
var historySubresource = &registry.Subresource{Name: "history", Verbs: []string{"get"}}

// ObjectHistory is the answer.
type ObjectHistory struct {
	Kind       string          `json:"kind"`       // "ObjectHistory"
	APIVersion string          `json:"apiVersion"` // "kontiki.io/v1"
	Metadata   metav1.ListMeta `json:"metadata"`   // resourceVersion: what the history is complete up to
	// CompactedRevision is where the store's memory ends; 0 if it remembers everything.
	CompactedRevision int64 `json:"compactedRevision"`
	// Retention is the rule by which the store forgets, in words.
	Retention string `json:"retention"`
	// Truncated says that there are older revisions, which are compacted or over the limit.
	Truncated bool             `json:"truncated"`
	Items     []ObjectRevision `json:"items"` // oldest first
}

// ObjectRevision is one write of an object.
type ObjectRevision struct {
	Revision int64      `json:"revision"` // the object's resourceVersion
	Type     string     `json:"type"`     // ADDED, MODIFIED or DELETED
	Time     *time.Time `json:"time,omitempty"`
	TimeFrom string     `json:"timeFrom,omitempty"` // "raft" (the leader's clock) or "managedFields"

	User      string `json:"user,omitempty"`
	UserAgent string `json:"userAgent,omitempty"`
	RequestID string `json:"requestID,omitempty"` // the Audit-Id of the request
	RaftIndex uint64 `json:"raftIndex,omitempty"`
	RaftTerm  uint64 `json:"raftTerm,omitempty"`

	Manager     string `json:"manager,omitempty"`   // the field manager
	Operation   string `json:"operation,omitempty"` // Apply or Update
	Subresource string `json:"subresource,omitempty"`

	// Changes since the revision before; of the first one shown, if it is no creation, they are not known.
	Changes []objectdiff.Change `json:"changes,omitempty"`
	// Object is set with ?objects=true.
	Object json.RawMessage `json:"object,omitempty"`
}

// Limits of ?limit=, which counts the newest revisions.
const (
	defaultHistoryLimit = 100
	maxHistoryLimit     = 1000
)

func (s *Server) serveHistory(w http.ResponseWriter, r *http.Request, t *target) error {
	limit, err := historyLimit(r)
	if err != nil {
		return err
	}
	found, err := t.store.History(r.Context(), t.namespace, t.name)
	if err != nil {
		return t.storeError(err, t.name)
	}
	answer := ObjectHistory{
		Kind: "ObjectHistory", APIVersion: "kontiki.io/v1", Metadata: metav1.ListMeta{ResourceVersion: revisionString(found.Current)},
		CompactedRevision: found.Compacted, Retention: s.config.retention(), Truncated: !found.Versions[0].Created,
	}
	writer := historian{target: t, withObjects: truthy(r.URL.Query(), "objects")}
	first := max(0, len(found.Versions)-limit)
	answer.Truncated = answer.Truncated || first > 0
	for i, v := range found.Versions {
		revision, err := writer.revision(v, i >= first)
		if err != nil {
			return err
		}
		if i >= first {
			answer.Items = append(answer.Items, revision)
		}
	}
	return writeJSON(w, r, http.StatusOK, answer)
}

func historyLimit(r *http.Request) (int, error) {
	asked := r.URL.Query().Get("limit")
	if asked == "" || asked == "0" {
		return defaultHistoryLimit, nil
	}
	n, err := strconv.Atoi(asked)
	if err != nil || n < 0 {
		return 0, badRequest("limit %q is not a number of revisions", asked)
	}
	return min(n, maxHistoryLimit), nil
}

// historian goes through the versions of an object, oldest first.
type historian struct {
	target      *target
	withObjects bool

	seen     bool // a version before this one
	previous *watch.Object
	fields   map[string]any // of previous
}

// revision describes the next version. Those that are not shown are only the one before for the next.
func (h *historian) revision(v storage.Version, shown bool) (ObjectRevision, error) {
	out := ObjectRevision{Revision: v.Revision, RaftIndex: v.Index, RaftTerm: v.Term, Type: string(watch.Modified)}
	switch {
	case v.Object == nil:
		out.Type = string(watch.Deleted)
	case v.Created:
		out.Type = string(watch.Added)
	}
	if v.By != nil {
		out.User, out.UserAgent, out.RequestID = v.By.User, v.By.UserAgent, v.By.RequestID
		out.Time, out.TimeFrom = v.At, "raft"
	}
	known := h.seen || v.Created
	fields, err := h.describe(v.Object, &out)
	if err != nil {
		return out, err
	}
	if shown && known && v.Object != nil {
		out.Changes = objectdiff.Diff(h.fields, fields)
	}
	h.seen, h.previous, h.fields = true, v.Object, fields
	return out, nil
}

// describe adds what the object itself says, and returns its fields; nil for no object. A version that cannot
// be decoded has a history like any other, without what changed.
func (h *historian) describe(object *watch.Object, out *ObjectRevision) (map[string]any, error) {
	if object == nil {
		return nil, nil
	}
	var corrupt *watch.CorruptError
	if _, err := object.Get(); errors.As(err, &corrupt) {
		return nil, nil
	}
	if entry := h.managing(object); entry != nil {
		out.Manager, out.Operation, out.Subresource = entry.Manager, string(entry.Operation), entry.Subresource
		if out.Time == nil && entry.Time != nil {
			out.Time, out.TimeFrom = &entry.Time.Time, "managedFields"
		}
	}
	data, err := encoderFor(form{format: formatJSON}, h.target.resource.GroupVersionKind()).object(object)
	if err != nil {
		return nil, err
	}
	if h.withObjects {
		out.Object = data
	}
	fields := map[string]any{}
	return fields, json.Unmarshal(data, &fields)
}

// managing returns the entry of managedFields that the write has made or changed; nil if there is none. Two equal writes
// of one manager within a second cannot be told apart: then it is the newest entry.
func (h *historian) managing(object *watch.Object) *metav1.ManagedFieldsEntry {
	var before []metav1.ManagedFieldsEntry
	if h.previous != nil {
		if obj, err := h.previous.Get(); err == nil {
			before = accessor(obj).GetManagedFields()
		}
	}
	var newest *metav1.ManagedFieldsEntry
	entries := accessor(object.Object()).GetManagedFields()
	for i := range entries {
		e := &entries[i]
		if isNew(e, before) {
			return e
		}
		if newest == nil || e.Time != nil && newest.Time != nil && newest.Time.Before(e.Time) {
			newest = e
		}
	}
	return newest
}

func isNew(e *metav1.ManagedFieldsEntry, before []metav1.ManagedFieldsEntry) bool {
	for i := range before {
		if equality.Semantic.DeepEqual(e, &before[i]) {
			return false
		}
	}
	return true
}
