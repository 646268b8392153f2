package apiserver

import (
	"cmp"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A format is how bytes are laid out.
type format string

// The formats, most preferred first: what "Accept: */*" gets is JSON.
const (
	formatJSON     format = "application/json"
	formatYAML     format = "application/yaml"
	formatProtobuf format = "application/vnd.kubernetes.protobuf"
	formatCBOR     format = "application/cbor"
)

var formats = []format{formatJSON, formatYAML, formatProtobuf, formatCBOR}

// streams says whether a watch can be sent in the format.
func (f format) streams() bool { return f != formatYAML }

// streamType is what a watch in the format is asked for as.
func (f format) streamType() string {
	if f == formatCBOR {
		return "application/cbor-seq"
	}
	return string(f) + ";stream=watch"
}

// A shape is what is shown of an object.
type shape string

const (
	asObject      shape = ""                          // the whole object
	asTable       shape = "Table"                     // the columns that kubectl prints
	asPartial     shape = "PartialObjectMetadata"     // metadata of one object, or of each in a watch
	asPartialList shape = "PartialObjectMetadataList" // metadata of each object in a list
)

// A form is how the client wants its answer: the format, and what to show of the objects.
// (Kubernetes API concepts, "Alternate representations of resources".)
type form struct {
	format  format
	pretty  bool
	as      shape
	version string // of meta.k8s.io, that as was asked for in
}

// verbAsk stands for the create of a review or a command, which is answered at once. There is no table of answers, as in
// Kubernetes, whose conformance test asks for one.
const verbAsk = "ask"

// negotiate picks the first of the client's Accept clauses, best quality first, that the server can
// answer. verb decides which shapes make sense, none outside resources; binary says whether the
// answer has a protobuf form.
func negotiate(r *http.Request, verb string, binary bool) (form, error) {
	clauses := acceptClauses(r.Header.Get("Accept"))
	for _, clause := range clauses {
		for _, format := range formats {
			if !clause.matches(format) && !(verb == "watch" && clause.isSequence(format)) || format == formatProtobuf && !binary && clause.params["as"] == "" {
				continue
			}
			if f, ok := formOf(clause, format, verb); ok {
				f.pretty = f.pretty || wantsPretty(r)
				return f, nil
			}
		}
	}
	return form{}, refusal(clauses, verb)
}

// refusal is the error for clauses of which none can be answered. Kubernetes tells media types that it does not have,
// which its router refuses, from those that it has not in this form.
func refusal(clauses []acceptClause, verb string) error {
	for _, clause := range clauses {
		if !slices.ContainsFunc(formats, clause.matches) {
			continue
		}
		as := shape(clause.params["as"])
		if as == asPartial && verb == "list" || as == asPartialList && (verb == "get" || verb == "create" || verb == "update" || verb == "patch" || verb == "delete") {
			return errWrongShape(as)
		}
		if verb == "watch" {
			return errNoSuchForm(streamTypes())
		}
		return errNoSuchForm(mediaTypes())
	}
	if verb == "list" || verb == "watch" {
		return errNotAcceptable(append(mediaTypes(), streamTypes()...))
	}
	return errNotAcceptable(mediaTypes())
}

// mediaTypes lists what the server speaks, for error messages; streamTypes is the same for watches.
func mediaTypes() []string {
	var list []string
	for _, format := range formats {
		list = append(list, string(format))
	}
	return list
}

func streamTypes() []string {
	var list []string
	for _, format := range formats {
		if format.streams() {
			list = append(list, format.streamType())
		}
	}
	return list
}

func formOf(clause acceptClause, format format, verb string) (form, bool) {
	f := form{format: format, as: shape(clause.params["as"]), pretty: clause.params["pretty"] == "1", version: clause.params["v"]}
	if stream := clause.params["stream"]; stream != "" && stream != "watch" {
		return f, false
	}
	if verb == "watch" && !format.streams() {
		return f, false
	}
	if f.as == asObject {
		return f, true
	}
	if clause.params["g"] != metav1.GroupName || f.version != "v1" && f.version != "v1beta1" {
		return f, false
	}
	switch f.as {
	case asTable:
		// Cells are JSON values: a table has no protobuf form.
		return f, verb != "" && verb != verbAsk && format != formatProtobuf
	case asPartial:
		return f, verb != "" && verb != "list"
	case asPartialList:
		return f, verb == "list"
	}
	return f, false
}

// wantsPretty indents JSON for people: on request, and for the programs they read answers with.
func wantsPretty(r *http.Request) bool {
	if strings.Contains(r.URL.RawQuery, "pretty") {
		if asked := r.URL.Query().Get("pretty"); asked != "" {
			pretty, _ := strconv.ParseBool(asked)
			return pretty
		}
	}
	agent := r.UserAgent()
	return strings.HasPrefix(agent, "curl") || strings.HasPrefix(agent, "Wget") || strings.HasPrefix(agent, "Mozilla/5.0")
}

// acceptClause is one media range of an Accept header (RFC 9110 section 12.5.1).
type acceptClause struct {
	kind, sub string // "application", "json"; "*" for any
	quality   float64
	params    map[string]string
}

// maxAcceptClauses bounds the work that one header can cause.
const maxAcceptClauses = 64

// acceptClauses parses the header, best quality first. No header means anything will do.
func acceptClauses(header string) []acceptClause {
	if strings.TrimSpace(header) == "" {
		return []acceptClause{{kind: "*", sub: "*"}}
	}
	var list []acceptClause
	for text := range strings.SplitSeq(header, ",") {
		mediaType, params, err := mime.ParseMediaType(text)
		if err != nil || len(list) == maxAcceptClauses {
			continue
		}
		kind, sub, _ := strings.Cut(mediaType, "/")
		quality := 1.0
		if q, err := strconv.ParseFloat(params["q"], 64); err == nil {
			quality = q
		}
		list = append(list, acceptClause{kind: kind, sub: sub, quality: quality, params: params})
	}
	slices.SortStableFunc(list, func(a, b acceptClause) int { return cmp.Compare(b.quality, a.quality) })
	return list
}

// isSequence says whether the clause is for a watch in CBOR, which has a media type of its own (RFC 8742).
func (c acceptClause) isSequence(f format) bool {
	return f == formatCBOR && c.kind == "application" && c.sub == "cbor-seq"
}

func (c acceptClause) matches(f format) bool {
	kind, sub, _ := strings.Cut(string(f), "/")
	return (c.kind == "*" || c.kind == kind) && (c.sub == "*" || c.sub == sub)
}
