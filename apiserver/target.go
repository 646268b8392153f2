package apiserver

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/mux"

	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kontiki/apiserver/registry"
	"kontiki/apiserver/storage"
	"kontiki/raftstore"
)

// A target is what a request for a resource is about: a row of the table, perhaps one of its
// subresources, the store behind it, and which object or collection of objects.
type target struct {
	verb      string // get, list, watch, create, update, patch, delete or deletecollection
	resource  *registry.Resource
	sub       *registry.Subresource // nil for the resource itself
	store     *storage.Store
	namespace string // empty for cluster-scoped resources, and for lists across namespaces
	name      string // empty for collections
	subpath   string // what follows a proxy subresource in the URL
	narrowing narrowing
}

// groupResource is how errors name the resource.
func (t *target) groupResource() schema.GroupResource { return t.resource.GroupResource() }

// serveResource is the door to every resource: it resolves the URL, authorizes, bounds the request
// in number, time and size, and calls the verb's handler.
func (s *Server) serveResource(w http.ResponseWriter, r *http.Request) error {
	facts := factsOf(r.Context())
	t, err := s.resolve(r)
	if err != nil {
		// Who may see nothing is not told what there is not.
		return cmp.Or(s.pathAccess(r), err)
	}
	facts.verb, facts.group, facts.resource = t.verb, t.resource.Group, t.resource.Resource
	facts.longRunning = t.longRunning()
	if err := s.authorizeTarget(r.Context(), t); err != nil {
		return err
	}
	warnDeprecated(r.Context(), t.resource)
	ctx := raftstore.WithOrigin(registry.WithAsker(r.Context(), facts.user.info()), origin(facts, r))
	if t.resource.GroupVersionResource == serviceResource {
		ctx = registry.WithServiceRanges(ctx, s.serviceRanges)
	}
	if facts.longRunning {
		return s.serveLongRunning(w, r.WithContext(ctx), t)
	}
	timeout, err := t.timeout(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r = r.WithContext(ctx)
	boundBody(w, r, timeout)
	r.Body = http.MaxBytesReader(w, r.Body, s.config.MaxBodyBytes)
	release, err := s.bodies.receive(r, facts.user.Name)
	if err != nil {
		return err
	}
	defer release()
	leave, err := s.inFlight.enter(w, r, t.flowRequest(facts.user))
	if err != nil {
		return err
	}
	defer leave()
	defer s.inFlight.count(r)()
	return s.handlerOf(t)(w, r, t)
}

// serveLongRunning serves a watch, or a stream to a node. A watch has a seat until it has begun: what comes first,
// a snapshot of all that it selects, is work like a list.
func (s *Server) serveLongRunning(w http.ResponseWriter, r *http.Request, t *target) error {
	defer s.inFlight.stay()()
	if t.verb == "watch" {
		leave, err := s.inFlight.enter(w, r, t.flowRequest(factsOf(r.Context()).user))
		if err != nil {
			return err
		}
		defer leave()
		r = r.WithContext(withSeated(r.Context(), leave))
	}
	return s.handlerOf(t)(w, r, t)
}

// longRunning tells the requests that stay open until somebody closes them.
func (t *target) longRunning() bool { return t.verb == "watch" || t.sub != nil && t.sub.Connect }

// resolve finds the row and the verb.
func (s *Server) resolve(r *http.Request) (*target, error) {
	vars := mux.Vars(r)
	gvr := schema.GroupVersionResource{Group: vars["group"], Version: vars["version"], Resource: vars["resource"]}
	t := &target{
		resource:  s.table.Lookup(gvr),
		namespace: vars["namespace"],
		name:      vars["name"],
		subpath:   vars["subpath"],
	}
	if t.resource == nil {
		s.customs.catchUp(r.Context(), gvr)
		if t.resource = s.table.Lookup(gvr); t.resource == nil {
			return nil, errNotFoundPath()
		}
	}
	if name := vars["subresource"]; name != "" {
		t.sub = t.resource.Subresource(name)
		if t.sub == nil && name == historySubresource.Name && t.resource.Answers == nil {
			t.sub = historySubresource
		}
		if t.sub == nil {
			return nil, errNotFoundPath()
		}
	}
	if t.subpath != "" && t.sub.Name != "proxy" { // the others have nothing below them
		return nil, errNotFoundPath()
	}
	if t.namespace != "" && !t.resource.Namespaced {
		return nil, errNotFoundPath()
	}
	t.verb = verbOf(r, t)
	if t.namespace == "" && t.resource.Namespaced {
		if _, mentioned := vars["namespace"]; mentioned && t.verb != "list" && t.verb != "watch" {
			return nil, badRequest("Namespace parameter required.") // the piece of the path is empty
		}
		if t.name != "" {
			return nil, errNotFoundPath()
		}
	}
	if faults := path.IsValidPathSegmentName(t.name); len(faults) > 0 {
		return nil, badRequest("Name parameter invalid: %q: %s", t.name, strings.Join(faults, ", "))
	}
	if !t.allows(t.verb) {
		return nil, errMethodNotAllowed()
	}
	if t.resource.Answers == nil {
		t.store = s.storeOf(t.resource)
	}
	t.narrowing = narrowingOf(r, t.verb)
	return t, nil
}

// verbOf translates method and URL into the API's verb; empty if there is none.
func verbOf(r *http.Request, t *target) string {
	watching := mux.Vars(r)["watch"] != ""
	switch {
	case watching && r.Method == http.MethodGet:
		return "watch"
	case watching:
		return ""
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		switch {
		case t.name != "":
			return "get"
		case truthy(r.URL.Query(), "watch"):
			return "watch"
		}
		return "list"
	case http.MethodPost:
		if (t.name == "") == (t.sub == nil) {
			return "create"
		}
	case http.MethodPut:
		if t.name != "" {
			return "update"
		}
	case http.MethodPatch:
		if t.name != "" {
			return "patch"
		}
	case http.MethodDelete:
		if t.name != "" {
			return "delete"
		}
		return "deletecollection"
	case http.MethodOptions: // Kubernetes has no word for it: only a role with * allows it there, and here
		if t.sub != nil && t.sub.Name == "proxy" {
			return "options"
		}
	}
	return ""
}

// allows says whether the row serves the verb. Objects of a namespaced resource are only created
// and deleted in collections of one namespace.
func (t *target) allows(verb string) bool {
	if verb == "" {
		return false
	}
	if t.sub != nil {
		return verb == "options" || slices.Contains(t.sub.Verbs, verb)
	}
	if t.resource.Namespaced && t.namespace == "" && verb != "list" && verb != "watch" {
		return false
	}
	return t.resource.Verbs == nil || slices.Contains(t.resource.Verbs, verb)
}

// verbHandler serves one verb on a resource or subresource.
type verbHandler func(w http.ResponseWriter, r *http.Request, t *target) error

func (s *Server) handlerOf(t *target) verbHandler {
	if t.resource.Answers != nil {
		return s.serveAnswer
	}
	if t.sub != nil {
		switch {
		case t.sub == historySubresource:
			return s.serveHistory
		case t.sub.Connect:
			return s.connect
		case t.sub.Project != nil:
			return s.serveProjection
		case t.sub.Create != nil:
			return s.serveCommand
		case t.sub.Answer != nil:
			return s.serveQuestion
		}
	}
	switch t.verb {
	case "get":
		return s.serveGet
	case "list":
		return s.serveList
	case "watch":
		return s.serveWatch
	case "create":
		return s.serveCreate
	case "update":
		return s.serveUpdate
	case "patch":
		return s.servePatch
	case "delete":
		return s.serveDelete
	}
	return s.serveDeleteCollection // resolve lets no other verb pass
}

// maxUserAgentLength bounds what a client may make us store with every write.
const maxUserAgentLength = 256

// origin is what the raft entry of a write says about who asked.
func origin(facts *requestFacts, r *http.Request) raftstore.Origin {
	agent := r.UserAgent()
	return raftstore.Origin{User: facts.user.Name, UserAgent: agent[:min(len(agent), maxUserAgentLength)], RequestID: facts.id}
}

// Limits on how long a request may take, as in Kubernetes; a watch or a stream to a node has none.
const (
	maxRequestTime = 60 * time.Second
	maxWriteTime   = 34 * time.Second // of one object
)

// timeout is the server's bound, or the client's "timeout" parameter if that is shorter.
func (t *target) timeout(r *http.Request) (time.Duration, error) {
	bound := maxRequestTime
	switch t.verb {
	case "create", "update", "patch", "delete":
		bound = maxWriteTime
	}
	if !strings.Contains(r.URL.RawQuery, "timeout=") {
		return bound, nil
	}
	wish := r.URL.Query().Get("timeout")
	if wish == "" {
		return bound, nil
	}
	asked, err := time.ParseDuration(wish)
	switch {
	case err != nil:
		return 0, badRequest("invalid timeout specified in the request URL - %v", err)
	case asked <= 0:
		return bound, nil
	}
	return min(asked, bound), nil
}
