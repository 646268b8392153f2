package discovery

import (
	"mime"
	"net/http"
	"strings"
	"sync/atomic"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"

	"kontiki/apiserver/registry"
)

const aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// handler answers from documents that it renders again when the table has changed.
type handler struct {
	table  *registry.Table
	latest atomic.Pointer[documents]
}

// Handler serves /api, /apis, /api/V, /apis/G and /apis/G/V, with or without a trailing slash. Any
// other path, and any group or version that is not in the table, gets a 404. The method is not looked at.
//
// The aggregated form is served if the client's Accept header prefers it. Answers are JSON whatever
// else the client accepts: client-go decodes what it gets by Content-Type.
func Handler(table *registry.Table) http.Handler { return &handler{table: table} }

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	docs, err := h.documents()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	path := strings.TrimSuffix(r.URL.Path, "/")
	contentType := "application/json"
	doc, ok := docs.plain[path]
	if agg, has := docs.aggregated[path]; has && wantsAggregated(r.Header.Get("Accept")) {
		doc, contentType = agg, aggregatedType
	}
	if !ok {
		http.NotFound(w, r)
		return
	}
	header := w.Header()
	header.Set("Vary", "Accept")
	header.Set("Cache-Control", "public")
	header.Set("ETag", doc.etag)
	if r.Header.Get("If-None-Match") == doc.etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Type", contentType)
	_, _ = w.Write(doc.body) // the client has gone if this fails
}

// documents may render twice when two requests find a new table; both results are right.
func (h *handler) documents() (*documents, error) {
	if d := h.latest.Load(); d != nil && d.tableVersion == h.table.Version() {
		return d, nil
	}
	d, err := render(h.table)
	if err != nil {
		return nil, err
	}
	h.latest.Store(d)
	return d, nil
}

// wantsAggregated looks for the first media type of accept that is served here.
func wantsAggregated(accept string) bool {
	for part := range strings.SplitSeq(accept, ",") {
		media, params, err := mime.ParseMediaType(strings.TrimSpace(part))
		if err != nil {
			continue
		}
		switch {
		case media != "application/json" && media != "*/*" && media != "application/*":
		case params["as"] == "":
			return false
		case params["as"] == "APIGroupDiscoveryList" && params["g"] == apidiscoveryv2.GroupName && params["v"] == "v2":
			return true
		}
	}
	return false
}
