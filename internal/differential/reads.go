package differential

// The media types of answers that are asked for.
const (
	jsonType     = "application/json"
	yamlType     = "application/yaml"
	protobufType = "application/vnd.kubernetes.protobuf"
	cborType     = "application/cbor"
	tableType    = "application/json;as=Table;v=v1;g=meta.k8s.io"
	oldTableType = "application/json;as=Table;v=v1beta1;g=meta.k8s.io"
	partialType  = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	partialList  = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
)

var accepts = map[string]string{
	"json": jsonType, "yaml": yamlType, "protobuf": protobufType, "cbor": cborType, "table": tableType, "table v1beta1": oldTableType,
	"partial": partialType, "partial list": partialList, "unknown type": "text/html", "any": "*/*", "fallback": "text/html, application/json;q=0.5",
	"partial protobuf": "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "bad as": "application/json;as=Chair;v=v1;g=meta.k8s.io",
}

// listQueries are options of lists, good and bad.
var listQueries = []string{
	"limit=1", "limit=-1", "limit=x", "continue=x", "continue=e30", "resourceVersion=0", "resourceVersion={rv}", "resourceVersion=x",
	"resourceVersion={start}&resourceVersionMatch=Exact", "resourceVersion={rv}&resourceVersionMatch=NotOlderThan", "resourceVersionMatch=Exact",
	"resourceVersion=0&resourceVersionMatch=Exact", "resourceVersion=1&resourceVersionMatch=Sideways", "sendInitialEvents=true", "timeoutSeconds=5",
	"labelSelector=differential%3Dyes", "labelSelector=differential%3Dno", "labelSelector=%3D%3D%3D", "labelSelector=a+in+(b", "labelSelector=differential%21%3Dyes%2C%21x",
	"fieldSelector=metadata.name%3Dsubject", "fieldSelector=metadata.namespace%3Dnowhere", "fieldSelector=spec.nope%3D1", "fieldSelector=%3D", "pretty=true",
	"allowWatchBookmarks=true", "watch=false", "watch=x&timeoutSeconds=1&resourceVersion={rv}",
}

// reads of an object that exists, in every form.
func (s Subject) reads() []Step {
	var out []Step
	for name, accept := range accepts {
		out = append(out,
			Step{Name: "get as " + name, Method: "GET", Path: s.one(), Accept: accept},
			Step{Name: "list as " + name, Method: "GET", Path: s.Collection + "?labelSelector=differential%3Dyes", Accept: accept})
	}
	for _, query := range []string{"resourceVersion=0", "resourceVersion={rv}", "resourceVersion=x", "resourceVersion=99999999", "pretty=true", "pretty=x", "timeout=x"} {
		out = append(out, Step{Name: "get " + query, Method: "GET", Path: s.one() + "?" + query})
	}
	selected := ""
	if !s.Namespaced {
		selected = "&labelSelector=differential"
	}
	for _, query := range listQueries {
		out = append(out, Step{Name: "list " + query, Method: "GET", Path: s.Collection + "?" + query + selected})
	}
	return append(out,
		Step{Name: "get missing", Method: "GET", Path: s.Collection + "/missing"},
		Step{Name: "get missing as table", Method: "GET", Path: s.Collection + "/missing", Accept: tableType},
		Step{Name: "get missing as protobuf", Method: "GET", Path: s.Collection + "/missing", Accept: protobufType},
		Step{Name: "get bad name", Method: "GET", Path: s.Collection + "/Bad_Name%20"},
		Step{Name: "get subresource nope", Method: "GET", Path: s.one() + "/nope"},
		Step{Name: "list table includeObject", Method: "GET", Path: s.Collection + "?includeObject=None&labelSelector=differential", Accept: tableType},
		Step{Name: "list table includeObject bad", Method: "GET", Path: s.Collection + "?includeObject=Some", Accept: tableType},
		Step{Name: "post to object", Method: "POST", Path: s.one(), Body: s.body()},
		Step{Name: "put to collection", Method: "PUT", Path: s.Collection, Body: s.body()})
}
