package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"kontiki/apiserver/storage"
	"kontiki/apiserver/table"
	"kontiki/watch"
)

// minWatchTime bounds a watch whose client names no timeoutSeconds: half an hour to an hour, so that
// watches of many clients do not all end and begin again at the same moment.
const minWatchTime = 30 * time.Minute

// serveWatch is GET on a collection with watch=true: a stream of frames until the client goes, its
// time is up, the server stops, or an ERROR frame ends it.
//
// Not yet: watch over WebSocket.
func (s *Server) serveWatch(w http.ResponseWriter, r *http.Request, t *target) error {
	f, err := negotiate(r, t.verb, t.binary())
	if err != nil {
		return err
	}
	options, err := listOptions(r, t)
	if err != nil {
		return err
	}
	lasts := minWatchTime + rand.N(minWatchTime)
	if options.TimeoutSeconds != nil && *options.TimeoutSeconds > 0 {
		lasts = time.Duration(*options.TimeoutSeconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(r.Context(), lasts)
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()

	watcher, err := t.store.Watch(ctx, storage.WatchOptions{
		Selection:         selection(t, options),
		ResourceVersion:   options.ResourceVersion,
		SendInitialEvents: options.SendInitialEvents,
		Bookmarks:         options.AllowWatchBookmarks,
	})
	if err != nil {
		return t.storeError(err, "")
	}
	defer watcher.Stop()
	stream, err := newWatchStream(w, r, t, f)
	if err != nil {
		return err
	}
	defer stream.cutOff(ctx, s.config.AnswerTime)()
	if err := stream.open(r); err != nil {
		return err
	}
	leaveSeat(ctx)
	for {
		events, err := watcher.Next(ctx)
		if err == nil {
			err = stream.send(events)
		}
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, errClientGone) {
				stream.fail(t.storeError(err, ""))
			}
			return nil
		}
	}
}

// errClientGone ends a watch whose connection no longer takes frames.
var errClientGone = errors.New("client is gone")

// frameBufferLimit is how much is gathered before it is written, if many events are at hand.
const frameBufferLimit = 64 << 10

// watchStream writes watch events to one client. One goroutine uses it.
type watchStream struct {
	form
	out     http.ResponseWriter
	flush   *http.ResponseController
	target  *target
	encoder encoder
	buffer  []byte
	table   *table.Stream // set for asTable
}

func newWatchStream(w http.ResponseWriter, r *http.Request, t *target, f form) (*watchStream, error) {
	stream := &watchStream{form: f, out: w, flush: http.NewResponseController(w), target: t,
		encoder: encoderFor(f, t.resource.GroupVersionKind())}
	if f.as == asTable {
		options, err := tableOptions(r, f)
		if err != nil {
			return nil, err
		}
		stream.table = table.NewStream(t.resource, options)
	}
	return stream, nil
}

// open sends the headers at once: a client counts its watch as established from then on.
func (s *watchStream) open(r *http.Request) error {
	contentType := s.contentType()
	if s.format == formatProtobuf {
		contentType += ";stream=watch"
	}
	sendWarnings(r.Context(), s.out.Header())
	s.out.Header().Set("Content-Type", contentType)
	s.out.WriteHeader(http.StatusOK)
	return s.flush.Flush()
}

// cutOff lets a write fail that is still under way some time after ctx has ended: nobody else would end the watch
// of a client that does not read. The caller calls release before it returns.
func (s *watchStream) cutOff(ctx context.Context, after time.Duration) (release func()) {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		_ = s.flush.SetWriteDeadline(time.Now().Add(after)) // without a connection (tests) nothing blocks
	})
	return func() {
		if !stop() {
			<-done // it uses the response, which is gone after the handler
		}
	}
}

// send writes events and flushes once for all of them.
func (s *watchStream) send(events []watch.Event) error {
	for i := range events {
		object, err := s.encode(&events[i])
		if err != nil {
			return err
		}
		s.append(string(events[i].Type), object)
		if len(s.buffer) > frameBufferLimit {
			if err := s.write(); err != nil {
				return err
			}
		}
	}
	if err := s.write(); err != nil {
		return err
	}
	if s.flush.Flush() != nil {
		return errClientGone
	}
	return nil
}

func (s *watchStream) write() error {
	_, err := s.out.Write(s.buffer)
	s.buffer = s.buffer[:0]
	if cap(s.buffer) > 4*frameBufferLimit {
		s.buffer = nil // one large object should not cost memory for the rest of the watch
	}
	if err != nil {
		return errClientGone
	}
	return nil
}

// append adds one frame to the buffer.
func (s *watchStream) append(eventType string, object []byte) {
	if s.format == formatProtobuf {
		s.buffer = appendWatchFrame(s.buffer, eventType, object)
		return
	}
	s.buffer = append(append(append(s.buffer, `{"type":"`...), eventType...), `","object":`...)
	s.buffer = append(append(s.buffer, object...), "}\n"...)
}

// encode returns the object of an event, without pretty-printing: a JSON frame is one line.
func (s *watchStream) encode(event *watch.Event) ([]byte, error) {
	if event.Object == nil {
		return s.encodeUnshared(s.target.store.Bookmark(*event))
	}
	if s.table != nil {
		return s.encodeUnshared(event.Object.Object())
	}
	body, err := s.encoder.body(event.Object)
	if err != nil {
		return nil, err
	}
	return s.encoder.appendObject(make([]byte, 0, len(body)+64), body), nil
}

func (s *watchStream) encodeUnshared(obj runtime.Object) ([]byte, error) {
	if s.table != nil {
		return json.Marshal(s.table.Next(obj, time.Now()))
	}
	body, err := s.encoder.encodeBody(obj)
	if err != nil {
		return nil, err
	}
	return s.encoder.appendObject(nil, body), nil
}

// fail sends the ERROR frame that ends a watch which cannot go on.
func (s *watchStream) fail(err error) {
	plain := s.form
	plain.as, plain.pretty = asObject, false
	status := statusOf(err)
	e := encoderFor(plain, status.GroupVersionKind())
	body, err := e.encodeBody(status)
	if err != nil {
		return
	}
	s.append("ERROR", e.appendObject(nil, body))
	if s.write() == nil {
		_ = s.flush.Flush()
	}
}
