package apiserver

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/gorilla/websocket"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
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
	defer endWith(t.resource.Gone, cancel)()

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
	if websocket.IsWebSocketUpgrade(r) {
		if stream.socket, err = openSocket(w, r, f.format == formatJSON); err != nil {
			return nil // it has been answered
		}
		defer stream.socket.close(stream.socket.hangUp(cancel))
	}
	defer stream.cutOff(ctx, s.config.AnswerTime)()
	if err := stream.open(r, options); err != nil {
		return nil // the client is gone
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
	object  []byte            // that encode last returned
	table   *table.Stream     // set for asTable
	socket  *watchSocket      // set if the client has asked for a WebSocket
	gzip    *streamCompressor // set if what is sent is compressed
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
func (s *watchStream) open(r *http.Request, options *internalversion.ListOptions) error {
	if s.socket != nil {
		return nil // it has answered
	}
	contentType := s.format.streamType()
	if s.format == formatJSON {
		contentType = s.contentType()
	}
	sendWarnings(r.Context(), s.out.Header())
	s.out.Header().Set("Content-Type", contentType)
	s.gzip = compressorFor(s.out, r, options)
	s.out.WriteHeader(http.StatusOK)
	return s.flush.Flush()
}

// cutOff lets a write fail that is still under way some time after ctx has ended: nobody else would end the watch
// of a client that does not read. The caller calls release before it returns.
func (s *watchStream) cutOff(ctx context.Context, after time.Duration) (release func()) {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		_ = s.setWriteDeadline(time.Now().Add(after)) // without a connection (tests) nothing blocks
	})
	return func() {
		if !stop() {
			<-done // it uses the response, which is gone after the handler
		}
	}
}

// setWriteDeadline is called from another goroutine while the stream is written.
func (s *watchStream) setWriteDeadline(at time.Time) error {
	if s.socket != nil {
		return s.socket.conn.NetConn().SetWriteDeadline(at)
	}
	return s.flush.SetWriteDeadline(at)
}

// send writes events and flushes once for all of them.
func (s *watchStream) send(events []watch.Event) error {
	for i := range events {
		object, err := s.encode(&events[i])
		if err != nil {
			return err
		}
		if err := s.append(string(events[i].Type), object); err != nil {
			return err
		}
		if len(s.buffer) > frameBufferLimit {
			if err := s.write(); err != nil {
				return err
			}
		}
	}
	if s.socket != nil {
		return nil
	}
	if err := s.write(); err != nil {
		return err
	}
	if s.gzip != nil && slices.ContainsFunc(events, func(e watch.Event) bool { return e.InitialEventsEnd }) {
		s.gzip.later = true
	}
	if s.flush.Flush() != nil {
		return errClientGone
	}
	return nil
}

func (s *watchStream) write() error {
	var out io.Writer = s.out
	if s.gzip != nil {
		out = s.gzip
	}
	_, err := out.Write(s.buffer)
	s.buffer = s.buffer[:0]
	if cap(s.buffer) > 4*frameBufferLimit || cap(s.object) > 4*frameBufferLimit {
		s.buffer, s.object = nil, nil // one large object should not cost memory for the rest of the watch
	}
	if err != nil {
		return errClientGone
	}
	return nil
}

// append adds one frame to the buffer. A WebSocket sends it at once, as a message: that has a length of its own.
func (s *watchStream) append(eventType string, object []byte) error {
	switch s.format {
	case formatProtobuf:
		s.buffer = appendWatchFrame(s.buffer, eventType, object)
	case formatCBOR:
		s.buffer = appendCBORFrame(s.buffer, eventType, object)
	default:
		s.buffer = append(append(append(s.buffer, `{"type":"`...), eventType...), `","object":`...)
		s.buffer = append(append(s.buffer, object...), "}\n"...)
	}
	if s.socket == nil {
		return nil
	}
	message := s.buffer
	if s.format == formatProtobuf {
		message = message[frameLengthBytes:]
	}
	s.buffer = s.buffer[:0]
	return s.socket.send(message)
}

// encode returns the object of an event, without pretty-printing: a JSON frame is one line. It is good until the next call.
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
	s.object = s.encoder.appendObject(s.object[:0], body)
	return s.object, nil
}

func (s *watchStream) encodeUnshared(obj runtime.Object) ([]byte, error) {
	if s.table != nil {
		rows := s.table.Next(obj, time.Now())
		e := encoderFor(form{format: s.format}, rows.GroupVersionKind())
		body, err := e.encodeBody(rows)
		if err != nil {
			return nil, err
		}
		return e.appendObject(nil, body), nil
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
	if s.append("ERROR", e.appendObject(nil, body)) == nil && s.socket == nil && s.write() == nil {
		_ = s.flush.Flush()
	}
}

// lastEvents is how long a watch goes on after its resource has gone: the deletions of the last objects are on their way.
const lastEvents = 200 * time.Millisecond

// endWith cancels soon after gone is closed, which nil never is. The caller calls release before it returns.
func endWith(gone <-chan struct{}, cancel context.CancelFunc) (release func()) {
	if gone == nil {
		return func() {}
	}
	over := make(chan struct{})
	go func() {
		select {
		case <-gone:
			time.AfterFunc(lastEvents, cancel)
		case <-over:
		}
	}()
	return func() { close(over) }
}
