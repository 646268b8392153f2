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
	table    *registry.Table
	others   func() *Others
	notFound http.Handler
	latest   atomic.Pointer[documents]
}

// Handler serves /api, /apis, /api/V, /apis/G and /apis/G/V, with or without slashes at the end. others returns what other
// servers have, the same pointer as long as that is the same; a nil func means that there are none. Any
// other path, and any group or version that is not in the table, is for notFound. The method is not looked at.
//
// The aggregated form is served if the client's Accept header prefers it. Answers are JSON whatever
// else the client accepts: client-go decodes what it gets by Content-Type.
func Handler(table *registry.Table, others func() *Others, notFound http.Handler) http.Handler {
	if others == nil {
		none := &Others{}
		others = func() *Others { return none }
	}
	return &handler{table: table, others: others, notFound: notFound}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	docs, err := h.documents()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	path := strings.TrimRight(r.URL.Path, "/")
	if doc, ok := docs.aggregated[path]; ok && wantsAggregated(r.Header.Get("Accept")) {
		writeTagged(w, r, doc)
		return
	}
	doc, ok := docs.plain[path]
	if !ok {
		h.notFound.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(doc.body) // the client has gone if this fails
}

// writeTagged answers with an aggregated document, or tells a client that it has it already.
func writeTagged(w http.ResponseWriter, r *http.Request, doc document) {
	header := w.Header()
	header.Set("Vary", "Accept")
	header.Set("Cache-Control", "public")
	header.Set("ETag", doc.etag)
	if r.Header.Get("If-None-Match") == doc.etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Type", aggregatedType)
	_, _ = w.Write(doc.body) // the client has gone if this fails
}

// documents may render twice when two requests find a new table; both results are right.
func (h *handler) documents() (*documents, error) {
	others := h.others()
	if d := h.latest.Load(); d != nil && d.tableVersion == h.table.Version() && d.others == others {
		return d, nil
	}
	d, err := render(h.table, others)
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
