package audit

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// A Record gathers what the audit log will say of one request, and says it stage by stage. It is safe for concurrent use;
// all methods of a nil Record do nothing.
type Record struct {
	auditor  *Auditor
	decision Decision

	mu    sync.Mutex // guards what follows; a sink's lock is taken while it is held
	event auditv1.Event
	said  bool // ResponseStarted
}

type recordKey struct{}

// WithRecord returns the context of a request that is audited.
func WithRecord(ctx context.Context, record *Record) context.Context {
	return context.WithValue(ctx, recordKey{}, record)
}

// RecordOf returns the record of the request that ctx belongs to; nil if that is not audited.
func RecordOf(ctx context.Context) *Record {
	record, _ := ctx.Value(recordKey{}).(*Record)
	return record
}

// Annotate adds to the record of ctx's request why something was decided. The key names the part that decides, as in
// "authorization.k8s.io/reason"; the value is short and nothing secret. What was said first under a key stands, as in
// Kubernetes. Outside an audited request it does nothing.
func Annotate(ctx context.Context, key, value string) { RecordOf(ctx).annotate(key, value) }

func (r *Record) annotate(key, value string) {
	r.change(func(event *auditv1.Event) {
		if _, said := event.Annotations[key]; said {
			return
		}
		if event.Annotations == nil {
			event.Annotations = map[string]string{}
		}
		event.Annotations[key] = value
	})
}

// Annotations are what has been said so far.
func (r *Record) Annotations() (said map[string]string) {
	r.change(func(event *auditv1.Event) { said = maps.Clone(event.Annotations) })
	return said
}

// change runs f on the event, unless there is no record.
func (r *Record) change(f func(*auditv1.Event)) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.event)
}

// Records says whether things of a level are recorded of the request: what is only for the audit log need not be worked
// out otherwise.
func (r *Record) Records(level auditv1.Level) bool { return r != nil && r.decision.records(level) }

// OmitsManagedFields says whether the policy wants bodies without them.
func (r *Record) OmitsManagedFields() bool { return r != nil && r.decision.OmitManagedFields }

// Impersonated says as whom the user acts.
func (r *Record) Impersonated(user authenticationv1.UserInfo) {
	r.change(func(event *auditv1.Event) { event.ImpersonatedUser = &user })
}

// RequestMeta completes the reference to the object by what the request's body says of itself.
func (r *Record) RequestMeta(m metav1.Object) {
	r.change(func(event *auditv1.Event) {
		ref := event.ObjectRef
		if ref == nil {
			return
		}
		fill(&ref.Namespace, m.GetNamespace())
		fill(&ref.Name, m.GetName())
		fill(&ref.UID, m.GetUID())
		fill(&ref.ResourceVersion, m.GetResourceVersion())
	})
}

func fill[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}

// RequestBody is what the client has sent, as JSON. It is kept at level Request and above, of requests for resources.
func (r *Record) RequestBody(body []byte) {
	if r.Records(auditv1.LevelRequest) {
		r.change(func(event *auditv1.Event) { event.RequestObject = raw(event, body) })
	}
}

// ResponseBody is what the client is sent, as JSON. It is kept at level RequestResponse, of requests for resources.
func (r *Record) ResponseBody(body []byte) {
	if r.Records(auditv1.LevelRequestResponse) {
		r.change(func(event *auditv1.Event) { event.ResponseObject = raw(event, body) })
	}
}

// raw makes an event's object of JSON; nil, and nothing lost but the body, of what is none.
func raw(event *auditv1.Event, body []byte) *runtime.Unknown {
	if event.ObjectRef == nil || !json.Valid(body) {
		return nil
	}
	return &runtime.Unknown{Raw: body, ContentType: runtime.ContentTypeJSON}
}

// Status is the Status that the client is answered with. One about a faulty body quotes it: at level Metadata only what is wrong
// where is kept of it. (kube-apiserver keeps all of it.)
func (r *Record) Status(status *metav1.Status) {
	r.change(func(event *auditv1.Event) {
		kept := &metav1.Status{
			Status: status.Status, Message: status.Message, Reason: status.Reason, Details: status.Details, Code: status.Code,
		}
		quotes := status.Code == http.StatusBadRequest || status.Code == http.StatusUnprocessableEntity
		if quotes && !r.decision.records(auditv1.LevelRequest) {
			kept.Message, kept.Details = "", withoutMessages(status.Details)
		}
		event.ResponseStatus = kept
	})
}

func withoutMessages(details *metav1.StatusDetails) *metav1.StatusDetails {
	if details == nil {
		return nil
	}
	out := details.DeepCopy()
	for i := range out.Causes {
		out.Causes[i].Message = ""
	}
	return out
}

// Received begins the record: stage RequestReceived. An error means that the event was not stored where it had to be
// (ModeBlockingStrict): the request must not go on.
func (r *Record) Received() error { return r.emit(auditv1.StageRequestReceived) }

// Started says that the answer begins: stage ResponseStarted, of requests that last. It says so once.
func (r *Record) Started(code int) {
	r.change(func(event *auditv1.Event) {
		if !r.said {
			r.said = true
			r.answered(code)
			_ = r.emitLocked(auditv1.StageResponseStarted) // counted
		}
	})
}

// Completed ends the record: stage ResponseComplete.
func (r *Record) Completed(code int) {
	r.change(func(*auditv1.Event) {
		r.answered(code)
		_ = r.emitLocked(auditv1.StageResponseComplete) // counted
	})
}

// Panicked ends the record of a request whose handler panicked: stage Panic. What it panicked with is for the server's log: it may
// be part of an object.
func (r *Record) Panicked() {
	r.Status(&metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError,
		Message: "the handler panicked",
	})
	_ = r.emit(auditv1.StagePanic) // counted
}

// answered notes the status code, beside the Status if there is one. The caller holds the lock.
func (r *Record) answered(code int) {
	if r.event.ResponseStatus == nil {
		r.event.ResponseStatus = &metav1.Status{}
	}
	r.event.ResponseStatus.Code = int32(code)
}

func (r *Record) emit(stage auditv1.Stage) (err error) {
	r.change(func(*auditv1.Event) { err = r.emitLocked(stage) })
	return err
}

// emitLocked hands the event, as it is now, to the sinks. The caller holds the lock.
func (r *Record) emitLocked(stage auditv1.Stage) error {
	if slices.Contains(r.decision.OmitStages, stage) {
		return nil
	}
	r.event.Stage, r.event.StageTimestamp = stage, metav1.NewMicroTime(time.Now())
	line, err := json.Marshal(&r.event)
	if err != nil {
		return r.auditor.failed("encoding", 1, err)
	}
	return r.auditor.write(line, stage == auditv1.StageRequestReceived)
}

// newEvent is what is known of a request when it comes in.
func newEvent(r *http.Request, q *Request, id string, level auditv1.Level, received time.Time) auditv1.Event {
	event := auditv1.Event{
		TypeMeta: metav1.TypeMeta{Kind: "Event", APIVersion: auditv1.SchemeGroupVersion.String()},
		Level:    level, AuditID: types.UID(id), RequestURI: requestURI(r, q), Verb: q.Verb, User: q.User,
		SourceIPs: sourceIPs(r), UserAgent: userAgent(r), RequestReceivedTimestamp: metav1.NewMicroTime(received),
	}
	if q.Resource != "" {
		event.ObjectRef = &auditv1.ObjectReference{
			Resource: q.Resource, Subresource: q.Subresource, APIGroup: q.Group, APIVersion: q.Version, Namespace: q.Namespace, Name: q.Name,
		}
	}
	return event
}
