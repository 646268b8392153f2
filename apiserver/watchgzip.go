package apiserver

import (
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/klauspost/compress/gzip"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
)

// storedWriters make gzip members that do not compress.
var storedWriters = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(io.Discard, gzip.NoCompression) // the level is valid
	return w
}}

// streamCompressor writes a streamed list (sendInitialEvents) with gzip, as Kubernetes does. Each write is a member of
// its own, so that a client can read it at once, and an idle watch holds no compressor. The initial events are
// compressed like a list; what happens later comes in small pieces to many watchers, and is only wrapped: compressing
// would cost more time than it saves bytes.
type streamCompressor struct {
	out   io.Writer
	later bool // the initial events are out
}

// compressorFor is nil for a watch that is no streamed list (with a bookmark at its end), or whose client does not take
// gzip. It sets the headers.
func compressorFor(w http.ResponseWriter, r *http.Request, options *internalversion.ListOptions) *streamCompressor {
	if options.SendInitialEvents == nil || !*options.SendInitialEvents || !options.AllowWatchBookmarks || !acceptsGzip(r) {
		return nil
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Add("Vary", "Accept-Encoding")
	return &streamCompressor{out: w}
}

// Write implements io.Writer.
func (c *streamCompressor) Write(frames []byte) (int, error) {
	if len(frames) == 0 {
		return 0, nil
	}
	pool := &gzipWriters
	if c.later {
		pool = &storedWriters
	}
	member := pool.Get().(*gzip.Writer)
	defer pool.Put(member)
	member.Reset(c.out)
	n, err := member.Write(frames)
	// A reader that meets the end of a member together with its last bytes (as Go's does) keeps these until the next
	// member begins: so the end comes apart.
	return n, errors.Join(err, member.Flush(), member.Close())
}
