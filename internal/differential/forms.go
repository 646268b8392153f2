package differential

import (
	"strings"

	"sigs.k8s.io/yaml"
)

// forms are writes in every media type, answered in every form, and reads with unusual headers and options.
func (s Subject) forms() []Step {
	asYAML, err := yaml.JSONToYAML([]byte(s.body()))
	if err != nil {
		panic("a manifest that came from YAML has none: " + err.Error())
	}
	one, dry := s.one()+"?dryRun=All", "?dryRun=All"
	merge := "application/merge-patch+json"
	out := []Step{
		{Name: "update as yaml", Method: "PUT", Path: one, Body: string(asYAML), ContentType: yamlType},
		{Name: "update as text", Method: "PUT", Path: one, Body: s.body(), ContentType: "text/plain"},
		{Name: "update as broken cbor", Method: "PUT", Path: one, Body: s.body(), ContentType: cborType},
		{Name: "update as cbor", Method: "PUT", Path: one, Body: s.CBOR, ContentType: cborType, Accept: cborType},
		{Name: "update as broken protobuf", Method: "PUT", Path: one, Body: "k8s\x00\x0a\xff", ContentType: protobufType},
		{Name: "update as protobuf", Method: "PUT", Path: one, Body: s.Protobuf, ContentType: protobufType, Accept: protobufType},
		{Name: "update with charset", Method: "PUT", Path: one, Body: s.body(), ContentType: "application/json; charset=utf-8"},
		{Name: "create as protobuf again", Method: "POST", Path: s.Collection + dry, Body: s.Protobuf, ContentType: protobufType, Accept: protobufType},
		{Name: "update dryRun twice", Method: "PUT", Path: one + "&dryRun=All", Body: s.body()},
		{Name: "update dryRun empty", Method: "PUT", Path: s.one() + "?dryRun=&fieldManager=creator", Body: s.body()},
		{Name: "update fieldManager unprintable", Method: "PUT", Path: one + "&fieldManager=%01", Body: s.body()},
		{Name: "update fieldValidation bad", Method: "PUT", Path: one + "&fieldValidation=Nope", Body: s.body()},
		{Name: "update unknown option", Method: "PUT", Path: one + "&nope=1", Body: s.body()},
		{Name: "patch fieldValidation bad", Method: "PATCH", Path: one + "&fieldValidation=Nope", ContentType: merge, Body: `{}`},
		{Name: "patch fieldManager bad", Method: "PATCH", Path: one + "&fieldManager=" + strings.Repeat("m", 129), ContentType: merge, Body: `{}`},
		{Name: "patch dryRun bad", Method: "PATCH", Path: s.one() + "?dryRun=x", ContentType: merge, Body: `{}`},
		{Name: "patch with charset", Method: "PATCH", Path: one, ContentType: merge + "; charset=utf-8", Body: `{}`},
		{Name: "apply as broken cbor", Method: "PATCH", Path: one + "&fieldManager=m", ContentType: "application/apply-patch+cbor", Body: "x"},
		{Name: "apply as cbor", Method: "PATCH", Path: one + "&fieldManager=m&force=true", ContentType: "application/apply-patch+cbor", Body: s.CBOR},
		{Name: "get with q", Method: "GET", Path: s.one(), Accept: "application/yaml;q=0.3, application/json;q=0.2"},
		{Name: "get with q=0", Method: "GET", Path: s.one(), Accept: "application/yaml;q=0, */*"},
		{Name: "get any application", Method: "GET", Path: s.one(), Accept: "application/*"},
		{Name: "get broken accept", Method: "GET", Path: s.one(), Accept: ";;,/"},
		{Name: "get table or json", Method: "GET", Path: s.one(), Accept: tableType + ",application/json"},
		{Name: "get bad as or json", Method: "GET", Path: s.one(), Accept: "application/json;as=Chair;v=v1;g=meta.k8s.io, application/json"},
		{Name: "get table v2", Method: "GET", Path: s.one(), Accept: "application/json;as=Table;v=v2;g=meta.k8s.io"},
		{Name: "get partial yaml", Method: "GET", Path: s.one(), Accept: "application/yaml;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"},
		{Name: "list table object", Method: "GET", Path: s.Collection + "?includeObject=Object&labelSelector=differential", Accept: tableType},
		{Name: "list table metadata", Method: "GET", Path: s.Collection + "?includeObject=Metadata&labelSelector=differential", Accept: tableType},
		{Name: "list table yaml", Method: "GET", Path: s.Collection + "?labelSelector=differential", Accept: strings.Replace(tableType, "json", "yaml", 1)},
		{Name: "get with body", Method: "GET", Path: s.one(), Body: `{"kind":"GetOptions"}`},
		{Name: "get unknown option", Method: "GET", Path: s.one() + "?nope=1&limit=5"},
		{Name: "get short timeout", Method: "GET", Path: s.one() + "?timeout=5s"},
		{Name: "options", Method: "OPTIONS", Path: s.one()},
	}
	for name, accept := range map[string]string{"yaml": yamlType, "table": tableType, "partial": partialType, "protobuf": protobufType, "cbor": cborType} {
		out = append(out,
			Step{Name: "update for " + name, Method: "PUT", Path: one, Body: s.body(), Accept: accept},
			Step{Name: "patch for " + name, Method: "PATCH", Path: one, Body: `{"metadata":{"annotations":{"p":"1"}}}`, ContentType: merge, Accept: accept},
			Step{Name: "delete for " + name, Method: "DELETE", Path: one, Accept: accept},
			Step{Name: "get missing for " + name, Method: "GET", Path: s.Collection + "/missing", Accept: accept})
	}
	if s.Namespaced {
		everywhere := strings.Replace(s.Collection, "/namespaces/"+namespace, "", 1)
		out = append(out,
			Step{Name: "list everywhere", Method: "GET", Path: everywhere + "?labelSelector=differential%3Dyes&fieldSelector=metadata.namespace%3D" + namespace},
			Step{Name: "list everywhere as table", Method: "GET", Path: everywhere + "?labelSelector=differential%3Dyes&fieldSelector=metadata.namespace%3D" + namespace, Accept: tableType},
			Step{Name: "create everywhere", Method: "POST", Path: everywhere, Body: s.body()},
			Step{Name: "delete everywhere", Method: "DELETE", Path: everywhere},
			Step{Name: "list in an empty namespace", Method: "GET", Path: strings.Replace(s.Collection, "/"+namespace+"/", "//", 1) + "?labelSelector=differential%3Dyes"},
			Step{Name: "get in an empty namespace", Method: "GET", Path: strings.Replace(s.one(), "/"+namespace+"/", "//", 1)},
			Step{Name: "list in a missing namespace", Method: "GET", Path: strings.Replace(s.Collection, "/"+namespace+"/", "/nowhere/", 1)})
	}
	return out
}
