package apiserver

import (
	"context"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kontiki/apiserver/flowcontrol"
)

// Requests that run at the same time, as in Kubernetes. Whoever gets no seat waits in a fair queue
// (apiserver/flowcontrol says which), or is answered 429 with Retry-After, which client-go obeys.
const seats = 600

// inFlight bounds the work that the server takes on at once.
type inFlight struct {
	flows   *flowcontrol.Controller
	metrics *metrics
}

func newInFlight(m *metrics) *inFlight {
	l := &inFlight{flows: flowcontrol.New(flowcontrol.Config{Seats: seats}), metrics: m}
	m.registry.MustRegister(l.flows.Collectors()...)
	return l
}

// enter waits for a seat for the request, which leave gives back, or refuses. The response names the flow
// schema and the priority level in any case.
func (l *inFlight) enter(w http.ResponseWriter, r *http.Request, about flowcontrol.Request) (leave func(), err error) {
	ticket, err := l.flows.Enter(r.Context(), about)
	setUID(w, "X-Kubernetes-Pf-Flowschema-Uid", ticket.SchemaUID)
	setUID(w, "X-Kubernetes-Pf-Prioritylevel-Uid", ticket.LevelUID)
	if err != nil {
		l.metrics.refused.WithLabelValues(requestKind(r)).Inc()
	}
	return ticket.Leave, err
}

// count counts a request for a resource while it runs.
func (l *inFlight) count(r *http.Request) (done func()) {
	gauge := l.metrics.inFlight.WithLabelValues(requestKind(r))
	gauge.Inc()
	return gauge.Dec
}

func requestKind(r *http.Request) string {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return "mutating"
	}
	return "readOnly"
}

// setUID sets a header to the UID of an object. Until the objects are written there is none.
func setUID(w http.ResponseWriter, header, uid string) {
	if uid != "" {
		w.Header().Set(header, uid)
	}
}

// stay counts a long-running request. It takes a seat while it begins, and none while it lasts.
func (l *inFlight) stay() (leave func()) {
	l.metrics.watchers.Inc()
	return l.metrics.watchers.Dec
}

// flowRequest is what flow schemas see of a request for a resource.
func (t *target) flowRequest(user User) flowcontrol.Request {
	resource := t.resource.Resource
	if t.sub != nil {
		resource += "/" + t.sub.Name
	}
	return flowcontrol.Request{User: user.Name, Groups: user.Groups, Verb: t.verb,
		Group: t.resource.Group, Resource: resource, Namespace: t.namespace}
}

// withSeat is enter for requests that are for no resource.
func (s *Server) withSeat(next http.Handler) http.Handler {
	return handlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		user := factsOf(r.Context()).user
		leave, err := s.inFlight.enter(w, r, flowcontrol.Request{User: user.Name, Groups: user.Groups,
			Verb: strings.ToLower(r.Method), Path: healthRoot(r.URL.Path)})
		if err != nil {
			return err
		}
		defer leave()
		next.ServeHTTP(w, r)
		return nil
	})
}

// rejected words a request without a seat as Kubernetes does.
func rejected(err *flowcontrol.RejectedError) *apierrors.StatusError {
	out := apierrors.NewTooManyRequests("Too many requests, please try again later.", 1)
	out.ErrStatus.Message += " (" + err.Error() + ")"
	return out
}

// seated is how the handler of a watch gives its seat back, once the watch has begun.
type seated struct{}

func withSeated(ctx context.Context, leave func()) context.Context {
	return context.WithValue(ctx, seated{}, leave)
}

// leaveSeat gives the seat of a long-running request back; it may be called again.
func leaveSeat(ctx context.Context) {
	if leave, ok := ctx.Value(seated{}).(func()); ok {
		leave()
	}
}
