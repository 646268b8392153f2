package apiserver

import (
	"bytes"
	"io"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A request's body is read before the request asks for a seat: a client that takes its time over sending
// it keeps nobody from running. What bounds such clients is the memory that they use: the bodies that are
// being received or served, of all clients together and of one user. More is answered 429.
const (
	maxBodiesBytes     = 256 << 20
	maxUserBodiesBytes = maxBodiesBytes / 4
)

// bodies counts the bytes of the bodies in memory.
type bodies struct {
	metrics *metrics

	mu    sync.Mutex // guards what follows
	total int64
	users map[string]int64
}

func newBodies(m *metrics) *bodies { return &bodies{metrics: m, users: map[string]int64{}} }

// add counts n bytes more for the user (fewer, if it is negative); false if they would be too many.
func (b *bodies) add(user string, n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > 0 && (b.total+n > maxBodiesBytes || b.users[user]+n > maxUserBodiesBytes) {
		return false
	}
	b.total += n
	if b.users[user] += n; b.users[user] == 0 {
		delete(b.users, user)
	}
	b.metrics.bodyBytes.Set(float64(b.total))
	return true
}

// errTooManyBodies: the client, or all clients together, have too many bodies in memory.
func errTooManyBodies() error {
	return apierrors.NewTooManyRequests("the bodies of the requests under way take up too much memory, please try again later", 1)
}

// bodyChunk is how much of a body is counted at a time.
const bodyChunk = 32 << 10

// receive reads the request's body, which the caller has bounded, and puts it in memory in its place. What is wrong with it
// the handler learns when it reads so far, as if it read from the connection. release is called when
// the request has been served.
func (b *bodies) receive(r *http.Request, user string) (release func(), err error) {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return func() {}, nil
	}
	var counted int64
	release = func() { b.add(user, -counted) }
	var body bytes.Buffer
	if n := r.ContentLength; n > 0 && n <= bodyChunk {
		body.Grow(int(n) + bytes.MinRead)
	}
	for {
		if !b.add(user, bodyChunk) {
			release()
			b.metrics.refused.WithLabelValues("body").Inc()
			return nil, errTooManyBodies()
		}
		counted += bodyChunk
		n, err := io.CopyN(&body, r.Body, bodyChunk)
		if n < bodyChunk {
			surplus := bodyChunk - n
			b.add(user, -surplus)
			counted -= surplus
		}
		if err != nil {
			r.Body = &receivedBody{Reader: &body, err: err}
			return release, nil
		}
	}
}

// receivedBody is a body in memory. err is what came after its last byte.
type receivedBody struct {
	io.Reader
	err error
}

// Read implements io.Reader.
func (b *receivedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		err = b.err
	}
	return n, err
}

// Close implements io.Closer. The connection's own body is net/http's to close.
func (b *receivedBody) Close() error { return nil }
