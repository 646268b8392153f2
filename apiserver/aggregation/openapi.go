package aggregation

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	specs "k8s.io/kube-openapi/pkg/aggregator"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// How often a backend is asked for its OpenAPI documents, and how large they may be. It sends one only if it has changed.
const (
	documentsPeriod  = time.Minute
	maxIndexBytes    = 1 << 20
	maxDocumentBytes = 16 << 20
)

// documents are a backend's OpenAPI documents: where those of version 3 are, by path, and the one of version 2, compressed.
type documents struct {
	asked  time.Time
	index  map[string]string
	second []byte
	etag   string // of second, the backend's own
	hash   string // of second
}

// refreshDocuments asks for the documents if it is time. A backend that has none, or none that can be read, is left out of
// those of this server. One goroutine may do so at a time for a backend, and others pass.
func (b *backend) refreshDocuments(ctx context.Context, log *slog.Logger) {
	if !b.refreshing.TryLock() {
		return
	}
	defer b.refreshing.Unlock()
	b.mu.Lock()
	next := b.documents
	b.mu.Unlock()
	if time.Since(next.asked) < documentsPeriod {
		return
	}
	next.asked = time.Now()
	if err := next.askIndex(ctx, b); err != nil {
		log.Debug("an aggregated API server has no OpenAPI v3", "service", b.host(), "err", err)
	}
	if err := next.askSecond(ctx, b); err != nil {
		log.Debug("an aggregated API server has no OpenAPI v2", "service", b.host(), "err", err)
	}
	b.mu.Lock()
	b.documents = next
	b.mu.Unlock()
}

func (d *documents) askIndex(ctx context.Context, b *backend) error {
	d.index = nil
	a, err := b.get(ctx, "/openapi/v3", "", maxIndexBytes)
	if err != nil {
		return err
	}
	var found handler3.OpenAPIV3Discovery
	if err := json.Unmarshal(a.body, &found); err != nil {
		return err
	}
	d.index = map[string]string{}
	for path, at := range found.Paths {
		d.index[path] = at.ServerRelativeURL
	}
	return nil
}

func (d *documents) askSecond(ctx context.Context, b *backend) error {
	a, err := b.get(ctx, "/openapi/v2", d.etag, maxDocumentBytes)
	if err == nil && a.code == http.StatusNotModified {
		return nil
	}
	d.second, d.etag, d.hash = nil, "", ""
	if err != nil {
		return err
	}
	if err := json.Unmarshal(a.body, &spec.Swagger{}); err != nil {
		return err
	}
	sum := sha256.Sum256(a.body)
	d.second, d.etag, d.hash = compress(a.body), a.etag, hex.EncodeToString(sum[:])
	return nil
}

// V3 returns where the documents of version 3 are, by path ("apis/G/V"), of the group versions that backends serve; without
// those that their backend does not have.
func (a *Aggregator) V3() map[string]string {
	out := map[string]string{}
	for gv, r := range *a.routes.Load() {
		path := strings.TrimPrefix(pathOf(gv), "/")
		r.backend.mu.Lock()
		at := r.backend.documents.index[path]
		r.backend.mu.Unlock()
		if own := "/openapi/v3/" + path; at != own && !strings.HasPrefix(at, own+"?") {
			at = "" // it leads somewhere else
		}
		out[path] = at
	}
	return out
}

// V2Version is another one when V2 is, and empty if there are none.
func (a *Aggregator) V2Version() string {
	var parts []string
	for gv, r := range *a.routes.Load() {
		r.backend.mu.Lock()
		if hash := r.backend.documents.hash; hash != "" {
			parts = append(parts, gv.String()+" "+hash)
		}
		r.backend.mu.Unlock()
	}
	slices.Sort(parts)
	return strings.Join(parts, "\n")
}

// V2 returns the documents of version 2, each cut down to the group version that its backend serves here.
func (a *Aggregator) V2() []*spec.Swagger {
	routes := *a.routes.Load()
	var out []*spec.Swagger
	for _, gv := range slices.SortedFunc(maps.Keys(routes), func(x, y schema.GroupVersion) int { return strings.Compare(x.String(), y.String()) }) {
		b := routes[gv].backend
		b.mu.Lock()
		second := b.documents.second
		b.mu.Unlock()
		whole := &spec.Swagger{}
		if len(second) == 0 || json.Unmarshal(decompress(second), whole) != nil || whole.Paths == nil {
			continue
		}
		out = append(out, specs.FilterSpecByPathsWithoutSideEffects(whole, []string{pathOf(gv) + "/"}))
	}
	return out
}

// pathOf is where a group version is served.
func pathOf(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.String()
}

func compress(plain []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(plain) // a bytes.Buffer takes everything
	_ = z.Close()
	return out.Bytes()
}

// decompress undoes compress; nil if there is nothing.
func decompress(zipped []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		return nil
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		return nil
	}
	return plain
}
