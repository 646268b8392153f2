package apiserver

import (
	"context"
	"errors"
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"kontiki/apiserver/audit"
)

// What the authorizer says in the audit log, under Kubernetes' keys.
const (
	decisionAnnotation = "authorization.k8s.io/decision"
	reasonAnnotation   = "authorization.k8s.io/reason"

	decisionAllow  = "allow"
	decisionForbid = "forbid"
)

// withAudit keeps the record of the requests that the policy wants recorded. It knows the user, and not yet as whom that
// one acts. A server without an audit log does not have the stage.
func (s *Server) withAudit(next http.Handler) http.Handler {
	if s.audit == nil {
		return next
	}
	return handlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		facts := factsOf(r.Context())
		record := s.audit.Begin(r, auditRequest(r, facts.user.info()), facts.id, facts.received)
		if record == nil {
			next.ServeHTTP(w, r)
			return nil
		}
		facts.record, facts.toJSON = record, s.toJSON
		if record.Received() != nil {
			return apierrors.NewInternalError(errors.New("failed to store audit event")) // the log says why
		}
		defer endRecord(record, w)
		next.ServeHTTP(w, r.WithContext(audit.WithRecord(r.Context(), record)))
		return nil
	})
}

// endRecord ends the record of a request that has been answered, or whose handler panics.
func endRecord(record *audit.Record, w http.ResponseWriter) {
	cause := recover()
	if cause == nil || cause == http.ErrAbortHandler {
		record.Completed(answeredCode(w))
	} else {
		record.Panicked()
	}
	if cause != nil {
		panic(cause) // withRecovery has the rest to do
	}
}

// auditRefused records a request whose credential is wrong. Nobody knows who it is.
func (s *Server) auditRefused(r *http.Request, refusal error) {
	facts := factsOf(r.Context())
	record := s.audit.Begin(r, auditRequest(r, authenticationv1.UserInfo{}), facts.id, facts.received)
	_ = record.Received() // refused it is anyway
	status := *statusOf(refusal)
	status.Message = "Authentication failed, " + attempted(r)
	record.Status(&status)
	record.Completed(int(status.Code))
}

// attempted says how a request has tried to prove who it is from, and nothing of the proof.
func attempted(r *http.Request) string {
	scheme, _, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	switch scheme = strings.ToLower(scheme); scheme {
	case "":
		return "no credentials provided"
	case "bearer", "basic":
		return "attempted: " + scheme
	}
	return "attempted: other" // it may be the secret itself
}

// auditRequest is a request as audit policies see it. It is not resolved yet, and may be for nothing that is served.
func auditRequest(r *http.Request, user authenticationv1.UserInfo) *audit.Request {
	q := &audit.Request{User: user, Verb: strings.ToLower(r.Method), Path: r.URL.Path}
	vars, ok := resourcePath(r.URL.Path)
	if !ok {
		return q
	}
	q.Group, q.Version, q.Resource, q.Subresource = vars["group"], vars["version"], vars["resource"], vars["subresource"]
	q.Namespace, q.Name = vars["namespace"], vars["name"]
	if q.Resource == "namespaces" { // an object is in itself, for policies, as in Kubernetes
		q.Namespace = q.Name
	}
	if q.Name == "" {
		q.Name = selectedName(r)
	}
	q.Verb = auditVerb(r, vars)
	return q
}

// selectedName is the name that a collection is narrowed to; empty if it is not.
func selectedName(r *http.Request) string {
	if !strings.Contains(r.URL.RawQuery, "fieldSelector") {
		return ""
	}
	selector, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if err != nil {
		return ""
	}
	name, _ := selector.RequiresExactMatch(metav1.ObjectNameField)
	return name
}

// auditVerb is what verbOf says of a request that is resolved.
func auditVerb(r *http.Request, vars map[string]string) string {
	name := vars["name"]
	if vars["watch"] != "" && r.Method == http.MethodGet {
		return "watch"
	}
	switch r.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if name == "" {
			return "deletecollection"
		}
		return "delete"
	case http.MethodGet, http.MethodHead:
		switch {
		case name != "":
			return "get"
		case truthy(r.URL.Query(), "watch"):
			return "watch"
		}
		return "list"
	}
	return ""
}

// auditDecision notes what the authorizer says of the request itself.
func auditDecision(ctx context.Context, allowed bool, reason string) {
	decision := decisionForbid
	if allowed {
		decision = decisionAllow
	}
	audit.Annotate(ctx, decisionAnnotation, decision)
	audit.Annotate(ctx, reasonAnnotation, reason)
}
