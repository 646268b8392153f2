package openapi

import (
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"kontiki/apiserver/registry"
)

const (
	jsonType    = "application/json"
	protobufV2  = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
	protobufV2a = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf" // the name of old clients
	protobufV3  = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
	protobufV3a = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
)

// V3Handler serves /openapi/v3 (the index, whose URLs carry a hash of what they lead to) and
// /openapi/v3/api/v1, /openapi/v3/apis/G/V. The documents of others, which may be nil, are in the index; they themselves serve them.
func V3Handler(table *registry.Table, base *Base, others Others) http.Handler {
	if others == nil {
		others = noOthers{}
	}
	docs := newCache(v3, table, base)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.Trim(strings.TrimPrefix(r.URL.Path, "/openapi/v3"), "/")
		if path == "" {
			serveIndex(w, r, docs, others.V3())
			return
		}
		for _, gv := range groupVersions(table.Resources()) {
			if pathOf(gv) == path {
				serveV3(w, r, docs, path)
				return
			}
		}
		http.NotFound(w, r)
	})
}

// V2Handler serves /openapi/v2, everything in one document, with what others have, which may be nil.
func V2Handler(table *registry.Table, base *Base, others Others) http.Handler {
	if others == nil {
		others = noOthers{}
	}
	docs := &merger{docs: newCache(v2, table, base), others: others}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		doc, err := docs.get()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		serve(w, r, doc, negotiate(r, protobufV2, protobufV2a), protobufV2)
	})
}

// serveIndex answers with where each document is, and under which hash. Others have theirs in the place of this server's.
func serveIndex(w http.ResponseWriter, r *http.Request, docs *cache, others map[string]string) {
	type location struct {
		ServerRelativeURL string `json:"serverRelativeURL"`
	}
	index := struct {
		Paths map[string]location `json:"paths"`
	}{map[string]location{}}
	for path, url := range others {
		if url != "" {
			index.Paths[path] = location{url}
		}
	}
	for _, gv := range groupVersions(docs.table.Resources()) {
		path := pathOf(gv)
		if _, theirs := others[path]; theirs {
			continue
		}
		hash, err := docs.hash(path)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		index.Paths[path] = location{hashedURL(path, hash)}
	}
	body, err := json.Marshal(index)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	serve(w, r, &document{json: parts{newPart(body)}, hash: hashOf(body)}, negotiate(r), "")
}

func hashedURL(path, hash string) string {
	return "/openapi/v3/" + path + "?" + url.Values{"hash": {hash}}.Encode()
}

// serveV3 lets a client that names the hash keep the document for ever; a client with an old hash is
// sent to the new one.
func serveV3(w http.ResponseWriter, r *http.Request, docs *cache, path string) {
	doc, err := docs.get(path)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if hash := r.URL.Query().Get("hash"); hash != "" {
		if hash != doc.hash {
			http.Redirect(w, r, hashedURL(path, doc.hash), http.StatusMovedPermanently)
			return
		}
		w.Header().Set("Cache-Control", "public, immutable, max-age=31536000")
	}
	serve(w, r, doc, negotiate(r, protobufV3, protobufV3a), protobufV3)
}

// negotiate returns "json", "protobuf" or, if nothing that the client accepts is served, "".
func negotiate(r *http.Request, protobufNames ...string) string {
	accept := r.Header.Get("Accept")
	if accept == "" {
		return "json"
	}
	for part := range strings.SplitSeq(accept, ",") {
		part = strings.TrimSpace(part)
		for _, name := range protobufNames {
			if strings.HasPrefix(part, name) { // the old name is not a valid media type
				return "protobuf"
			}
		}
		switch media, _, _ := mime.ParseMediaType(part); media {
		case jsonType, "application/*", "*/*":
			return "json"
		}
	}
	return ""
}

// serve writes a document, compressed if the client can take it, or 304 if it has it already.
func serve(w http.ResponseWriter, r *http.Request, doc *document, form, protobufType string) {
	header := w.Header()
	header.Set("Vary", "Accept, Accept-Encoding")
	body, contentType := doc.json, jsonType
	switch form {
	case "":
		http.Error(w, "only JSON and protobuf are served here", http.StatusNotAcceptable)
		return
	case "protobuf":
		var err error
		if body, err = doc.protobuf(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		contentType = protobufType
	}
	header.Set("ETag", quote(doc.hash))
	if r.Header.Get("If-None-Match") == quote(doc.hash) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Type", contentType)
	// If writing fails, the client has gone.
	if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		_, _ = io.Copy(w, body.plain())
		return
	}
	header.Set("Content-Encoding", "gzip")
	_ = body.gzip(w)
}
