package aggregation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

var errTooLarge = errors.New("the answer is too large")

// answer is what a backend says of itself.
type answer struct {
	code int // 2xx, or 304: it is what it was
	body []byte
	etag string
}

// get asks a backend for a document, as the API server itself. It must be good, or the one with the tag that is already known,
// and at most limit bytes.
func (b *backend) get(ctx context.Context, path, known string, limit int64) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+b.host()+path, nil)
	if err != nil {
		return answer{}, err
	}
	q.Header.Set("Accept", "application/json")
	q.Header.Set("User-Agent", "kontiki-aggregator")
	if known != "" {
		q.Header.Set("If-None-Match", known)
	}
	identify(q, checker)
	response, err := b.RoundTrip(q)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	a := answer{code: response.StatusCode, etag: response.Header.Get("ETag")}
	if known != "" && a.code == http.StatusNotModified {
		return a, nil
	}
	if a.code < 200 || a.code > 299 {
		return a, fmt.Errorf("bad status from %s: %d", q.URL, a.code)
	}
	if a.body, err = io.ReadAll(io.LimitReader(response.Body, limit+1)); err != nil {
		return a, err
	}
	if int64(len(a.body)) > limit {
		return a, fmt.Errorf("%w: more than %d bytes", errTooLarge, limit)
	}
	return a, nil
}
