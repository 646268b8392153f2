package apiserver

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNegotiate(t *testing.T) {
	const table = "application/json;as=Table;v=v1;g=meta.k8s.io"
	for _, c := range []struct {
		name, accept, verb string
		binary             bool
		want               form
		refused            bool
	}{
		{name: "nothing", verb: "get", want: form{format: formatJSON}},
		{name: "anything", accept: "*/*", verb: "list", want: form{format: formatJSON}},
		{name: "application/*", accept: "application/*", verb: "list", want: form{format: formatJSON}},
		{name: "browser", accept: "text/html,application/xhtml+xml,*/*;q=0.8", verb: "list", want: form{format: formatJSON}},
		{name: "yaml", accept: "application/yaml", verb: "get", want: form{format: formatYAML}},
		{name: "yaml cannot stream", accept: "application/yaml", verb: "watch", refused: true},
		{name: "protobuf", accept: "application/vnd.kubernetes.protobuf", verb: "get", binary: true, want: form{format: formatProtobuf}},
		{name: "no protobuf form", accept: "application/vnd.kubernetes.protobuf", verb: "get", refused: true},
		{name: "fall back from protobuf", accept: "application/vnd.kubernetes.protobuf,application/json", verb: "get", want: form{format: formatJSON}},
		{name: "quality decides", accept: "application/json;q=0.1,application/yaml;q=0.9", verb: "get", want: form{format: formatYAML}},
		{name: "table", accept: table + ",application/json", verb: "list", want: form{format: formatJSON, as: asTable, version: "v1"}},
		{name: "table v1beta1", accept: "application/json;as=Table;v=v1beta1;g=meta.k8s.io", verb: "watch", want: form{format: formatJSON, as: asTable, version: "v1beta1"}},
		{name: "table of an unknown version", accept: "application/json;as=Table;v=v2;g=meta.k8s.io", verb: "list", refused: true},
		{name: "a status is no table", accept: table + ",application/json", want: form{format: formatJSON}},
		{name: "nor is an answer", accept: table, verb: verbAsk, refused: true},
		{name: "an answer is partial", accept: table + ",application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", verb: verbAsk,
			want: form{format: formatJSON, as: asPartial, version: "v1"}},
		{name: "partial list", accept: "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", verb: "list", binary: true,
			want: form{format: formatProtobuf, as: asPartialList, version: "v1"}},
		{name: "partial list of one", accept: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", verb: "get", refused: true},
		{name: "watch of metadata", accept: "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", verb: "watch",
			want: form{format: formatJSON, as: asPartial, version: "v1"}},
		{name: "stream parameter", accept: "application/vnd.kubernetes.protobuf;stream=watch", verb: "watch", binary: true, want: form{format: formatProtobuf}},
		{name: "unknown stream", accept: "application/json;stream=frobs", verb: "watch", refused: true},
		{name: "nonsense", accept: "text/nonsense", verb: "get", refused: true},
		{name: "unparsable clauses are skipped", accept: ";;;,application/json", verb: "get", want: form{format: formatJSON}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			r.Header.Set("Accept", c.accept)
			got, err := negotiate(r, c.verb, c.binary)
			if c.refused {
				require.Equal(t, int32(406), statusOf(err).Code)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestPretty(t *testing.T) {
	for _, c := range []struct {
		agent, query string
		want         bool
	}{
		{"curl/8.1", "", true},
		{"curl/8.1", "?pretty=false", false},
		{"kubectl/v1.37.2", "", false},
		{"kubectl/v1.37.2", "?pretty=true", true},
		{"Mozilla/5.0 (X11)", "", true},
	} {
		r := httptest.NewRequest("GET", "/api"+c.query, nil)
		r.Header.Set("User-Agent", c.agent)
		require.Equal(t, c.want, wantsPretty(r), c)
	}
}

func FuzzNegotiate(f *testing.F) {
	f.Add("application/json;as=Table;v=v1;g=meta.k8s.io,*/*;q=0.1")
	f.Add("a/b;q=x, /,;=;")
	f.Fuzz(func(t *testing.T, accept string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Accept", accept)
		got, err := negotiate(r, "list", true)
		if err != nil {
			require.Equal(t, int32(406), statusOf(err).Code)
			return
		}
		require.Contains(t, formats, got.format)
	})
}
