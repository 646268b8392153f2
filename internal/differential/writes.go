package differential

import (
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// beforeCreate are creations that must fail, or leave nothing behind.
func (s Subject) beforeCreate() []Step {
	post := func(name, query, body string) Step {
		return Step{Name: "create " + name, Method: "POST", Path: s.Collection + query, Body: body, ContentType: jsonType}
	}
	dry := "?dryRun=All"
	out := []Step{
		post("dry", dry, s.body()), post("dryRun bad", "?dryRun=Some", s.body()), post("strict", dry+"&fieldValidation=Strict", s.body()),
		post("unknown field strict", dry+"&fieldValidation=Strict", s.body(top("nope", 1))),
		post("unknown field warn", dry+"&fieldValidation=Warn", s.body(top("nope", 1))),
		post("unknown field default", dry, s.body(metadata("nope", 1))),
		post("unknown field ignore", dry+"&fieldValidation=Ignore", s.body(top("nope", 1))),
		post("fieldValidation bad", dry+"&fieldValidation=Nope", s.body()),
		post("duplicate field strict", dry+"&fieldValidation=Strict", `{"kind":"`+s.Object.GetKind()+`",`+s.body()[1:]),
		post("fieldManager bad", dry+"&fieldManager="+strings.Repeat("m", 129), s.body()),
		post("empty body", dry, ""), post("broken JSON", dry, "{"), post("array", dry, "[]"), post("null", dry, "null"), post("string", dry, `"x"`),
		post("other kind", dry, s.body(top("kind", "Nope"))), post("no kind", dry, s.body(top("kind", ""))),
		post("other version", dry, s.body(top("apiVersion", "nope/v1"))), post("no version", dry, s.body(top("apiVersion", ""))),
		post("other namespace", dry, s.body(metadata("namespace", "elsewhere"))),
		post("resourceVersion", dry, s.body(metadata("resourceVersion", "7"))), post("uid", dry, s.body(metadata("uid", "u"))),
		post("no name", dry, s.body(metadata("name", ""))), post("bad name", dry, s.body(metadata("name", "Bad_Name!"))),
		post("long name", dry, s.body(metadata("name", strings.Repeat("x", 260)))), post("slash name", dry, s.body(metadata("name", "a/b"))),
		post("generateName bad", dry, s.body(metadata("name", ""), metadata("generateName", "Bad_"))),
		post("generation", dry, s.body(metadata("generation", 7))), post("deletionTimestamp", dry, s.body(metadata("deletionTimestamp", "2020-01-01T00:00:00Z"))),
		post("bad label", dry, s.body(metadata("labels", map[string]any{"a b": "c d", "differential": "yes"}))),
		post("labels of numbers", dry, s.body(metadata("labels", map[string]any{"a": 1}))),
		post("bad annotation", dry, s.body(metadata("annotations", map[string]any{"a b": ""}))),
		post("bad finalizer", dry, s.body(metadata("finalizers", []any{"nope"}))),
		post("bad owner", dry, s.body(metadata("ownerReferences", []any{map[string]any{"kind": "X"}}))),
		post("managedFields", dry, s.body(metadata("managedFields", []any{map[string]any{"manager": "m", "operation": "Nope"}}))),
		post("status", dry, s.body(top("status", map[string]any{}))),
		{Name: "create as text", Method: "POST", Path: s.Collection + dry, Body: s.body(), ContentType: "text/plain"},
		{Name: "create without type", Method: "POST", Path: s.Collection + dry, Body: s.body(), ContentType: " "},
		{Name: "create as broken cbor", Method: "POST", Path: s.Collection + dry, Body: s.body(), ContentType: cborType},
		{Name: "create as cbor", Method: "POST", Path: s.Collection + dry, Body: s.CBOR, ContentType: cborType, Accept: cborType},
		{Name: "create as protobuf", Method: "POST", Path: s.Collection + dry, Body: s.Protobuf, ContentType: protobufType},
		{Name: "create as broken protobuf", Method: "POST", Path: s.Collection + dry, Body: s.body(), ContentType: protobufType},
		{Name: "create for html", Method: "POST", Path: s.Collection + dry, Body: s.body(), Accept: "text/html"},
		{Name: "create for table", Method: "POST", Path: s.Collection + dry, Body: s.body(), Accept: tableType},
		{Name: "create for yaml", Method: "POST", Path: s.Collection + dry, Body: s.body(), Accept: yamlType},
	}
	if text, err := yaml.JSONToYAML([]byte(s.body())); err == nil {
		out = append(out, Step{Name: "create as yaml", Method: "POST", Path: s.Collection + dry, Body: string(text), ContentType: yamlType})
	}
	if s.Namespaced {
		missing := strings.Replace(s.Collection, "/"+namespace+"/", "/elsewhere/", 1)
		out = append(out, Step{Name: "create in missing namespace", Method: "POST", Path: missing, Body: s.body(metadata("namespace", "elsewhere"))})
	}
	return out
}

func (s Subject) creates() []Step {
	return []Step{
		{Name: "create", Method: "POST", Path: s.Collection + "?fieldManager=creator", Body: s.body()},
		{Name: "create again", Method: "POST", Path: s.Collection, Body: s.body()},
		{Name: "create again dry", Method: "POST", Path: s.Collection + "?dryRun=All", Body: s.body()},
	}
}

func (s Subject) updates() []Step {
	put := func(name, query string, edits ...func(map[string]any)) Step {
		return Step{Name: "update " + name, Method: "PUT", Path: s.one() + query, Body: s.body(edits...)}
	}
	return []Step{
		put("same", "?fieldManager=creator"), put("labels", "?fieldManager=updater", metadata("labels", map[string]any{"differential": "yes", "more": "1"})),
		put("current", "", metadata("resourceVersion", "{rv}")), put("stale", "", metadata("resourceVersion", "1")),
		put("not a revision", "", metadata("resourceVersion", "x")), put("zero", "", metadata("resourceVersion", "0")),
		put("uid", "?dryRun=All", metadata("uid", "{uid}")), put("other uid", "", metadata("uid", "00000000-0000-0000-0000-000000000000")),
		put("other name", "", metadata("name", "other")), put("no name", "?dryRun=All", metadata("name", "")),
		put("other namespace", "", metadata("namespace", "elsewhere")), put("dry", "?dryRun=All", metadata("annotations", map[string]any{"x": "y"})),
		put("unknown field strict", "?fieldValidation=Strict", top("nope", 1)), put("dryRun bad", "?dryRun=x"), put("bad finalizer", "?dryRun=All", metadata("finalizers", []any{"nope"})),
		{Name: "update missing", Method: "PUT", Path: s.Collection + "/missing?dryRun=All", Body: s.body(metadata("name", "missing"))},
		{Name: "update missing with rv", Method: "PUT", Path: s.Collection + "/missing?dryRun=All", Body: s.body(metadata("name", "missing"), metadata("resourceVersion", "5"))},
	}
}

func (s Subject) patches() []Step {
	var out []Step
	patch := func(name, kind, query, body string) {
		out = append(out, Step{Name: name, Method: "PATCH", Path: s.one() + query, ContentType: "application/" + kind, Body: body})
	}
	for _, kind := range []string{"merge-patch+json", "strategic-merge-patch+json"} {
		patch(kind+" label", kind, "?fieldManager=patcher", `{"metadata":{"labels":{"`+kind[:5]+`":"1"}}}`)
		patch(kind+" nothing", kind, "", `{}`)
		patch(kind+" dry", kind, "?dryRun=All", `{"metadata":{"annotations":{"p":"1"}}}`)
		patch(kind+" unknown", kind, "?dryRun=All&fieldValidation=Strict", `{"nope":1}`)
		patch(kind+" unknown warn", kind, "?dryRun=All", `{"nope":1}`)
		patch(kind+" duplicate", kind, "?dryRun=All&fieldValidation=Strict", `{"metadata":{},"metadata":{}}`)
		for _, bad := range []string{``, `[]`, `1`, `null`, `{`, `"x"`, `{"metadata":7}`, `{"metadata":{"name":"other"}}`, `{"kind":"Nope"}`,
			`{"metadata":{"resourceVersion":"1"}}`, `{"metadata":{"uid":"x"}}`, `{"metadata":{"labels":{"a b":"c"}}}`, `{"metadata":{"labels":{"a":1}}}`, `{"metadata":null}`} {
			patch(kind+" "+bad, kind, "?dryRun=All", bad)
		}
		patch(kind+" force", kind, "?dryRun=All&force=true", `{}`)
	}
	for _, body := range []string{`[]`, `{}`, `x`, `[{"op":"add","path":"/metadata/labels/j","value":"1"}]`, `[{"op":"test","path":"/metadata/name","value":"x"}]`,
		`[{"op":"remove","path":"/nope"}]`, `[{"op":"nope","path":"/kind"}]`, `[{"op":"replace","path":"/metadata/labels","value":7}]`, `[{"op":"add","path":"metadata","value":{}}]`, `[{"path":"/a"}]`,
		`[{"op":"add","path":"/nope","value":1}]`, `[{"op":"replace","path":"","value":{}}]`} {
		patch("json-patch "+body, "json-patch+json", "?dryRun=All", body)
	}
	patch("json-patch strict", "json-patch+json", "?dryRun=All&fieldValidation=Strict", `[{"op":"add","path":"/nope","value":1}]`)
	patch("unknown patch", "nope-patch+json", "", `{}`)
	patch("plain json patch", "json", "", `{}`)
	return append(out, Step{Name: "patch missing", Method: "PATCH", Path: s.Collection + "/missing", ContentType: "application/merge-patch+json", Body: `{}`})
}

func (s Subject) applies() []Step {
	var out []Step
	apply := func(name, path, query string, edits ...func(map[string]any)) {
		out = append(out, Step{Name: "apply " + name, Method: "PATCH", Path: path + query, ContentType: "application/apply-patch+yaml", Body: s.body(edits...)})
	}
	labels := func(value string) func(map[string]any) {
		return metadata("labels", map[string]any{"differential": "yes", "applied": value})
	}
	apply("without manager", s.one(), "")
	apply("dry", s.one(), "?fieldManager=one&force=true&dryRun=All", labels("1"))
	apply("first", s.one(), "?fieldManager=one&force=true", labels("1"))
	apply("same", s.one(), "?fieldManager=one", labels("1"))
	apply("conflict", s.one(), "?fieldManager=two", labels("2"))
	apply("forced", s.one(), "?fieldManager=two&force=true", labels("2"))
	apply("fewer", s.one(), "?fieldManager=two&force=true")
	apply("unknown field", s.one(), "?fieldManager=two&force=true&dryRun=All", top("nope", 1))
	apply("other name", s.one(), "?fieldManager=two&dryRun=All", metadata("name", "other"))
	apply("other kind", s.one(), "?fieldManager=two&dryRun=All", top("kind", "Nope"))
	apply("managedFields", s.one(), "?fieldManager=two&dryRun=All", metadata("managedFields", []any{map[string]any{"manager": "x"}}))
	apply("stale", s.one(), "?fieldManager=two&dryRun=All&force=true", metadata("resourceVersion", "1"))
	apply("creates", s.Collection+"/missing", "?fieldManager=one&dryRun=All", metadata("name", "missing"))
	for _, body := range []string{"", "x", "[]", "{", "a: b: c"} {
		out = append(out, Step{Name: "apply body " + body, Method: "PATCH", Path: s.one() + "?fieldManager=one&dryRun=All", ContentType: "application/apply-patch+yaml", Body: body})
	}
	return out
}

func (s Subject) subresources() []Step {
	var out []Step
	for _, name := range []string{"status", "scale", "approval", "finalize", "resize", "ephemeralcontainers"} {
		verbs, path := s.Subresources[name], s.one()+"/"+name
		if slices.Contains(verbs, "get") {
			out = append(out, Step{Name: name + " get", Method: "GET", Path: path}, Step{Name: name + " get table", Method: "GET", Path: path, Accept: tableType})
		}
		if slices.Contains(verbs, "update") {
			out = append(out, Step{Name: name + " update empty", Method: "PUT", Path: path + "?dryRun=All", Body: "{}"},
				Step{Name: name + " update", Method: "PUT", Path: path + "?dryRun=All", Body: s.body()})
		}
		if slices.Contains(verbs, "patch") {
			out = append(out,
				Step{Name: name + " patch", Method: "PATCH", Path: path + "?dryRun=All", ContentType: "application/merge-patch+json", Body: `{"metadata":{"labels":{"s":"1"}}}`},
				Step{Name: name + " patch bad", Method: "PATCH", Path: path + "?dryRun=All", ContentType: "application/merge-patch+json", Body: `{"status":7}`},
				Step{Name: name + " patch replicas", Method: "PATCH", Path: path + "?dryRun=All", ContentType: "application/merge-patch+json", Body: `{"spec":{"replicas":-1}}`})
		}
		if len(verbs) > 0 {
			out = append(out, Step{Name: name + " delete", Method: "DELETE", Path: path})
		}
	}
	return out
}

func (s Subject) deletes() []Step {
	del := func(name, query, body string) Step {
		return Step{Name: "delete " + name, Method: "DELETE", Path: s.one() + query, Body: body}
	}
	all := "?labelSelector=differential%3Dyes"
	return []Step{
		del("dry", "?dryRun=All", ""), del("dry body", "", `{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"]}`), del("dryRun bad", "?dryRun=x", ""),
		del("other uid", "", `{"preconditions":{"uid":"00000000-0000-0000-0000-000000000000"}}`), del("stale", "", `{"preconditions":{"resourceVersion":"1"}}`),
		del("bad policy", "?propagationPolicy=x", ""), del("both policies", "?propagationPolicy=Orphan&orphanDependents=true", ""), del("bad grace", "?gracePeriodSeconds=x", ""),
		del("bad body", "", `{"kind":"Nope"}`), del("broken body", "", `{`), del("unknown option", "", `{"kind":"DeleteOptions","apiVersion":"v1","nope":1,"dryRun":["All"]}`),
		{Name: "delete missing", Method: "DELETE", Path: s.Collection + "/missing"},
		{Name: "deletecollection dry", Method: "DELETE", Path: s.Collection + all + "&dryRun=All"},
		{Name: "deletecollection bad selector", Method: "DELETE", Path: s.Collection + "?labelSelector=%3D%3D%3D"},
		{Name: "deletecollection none", Method: "DELETE", Path: s.Collection + "?labelSelector=differential%3Dno"},
		del("foreground", "?propagationPolicy=Foreground&dryRun=All", ""), del("orphan", "?propagationPolicy=Orphan&dryRun=All", ""),
		del("now", "?gracePeriodSeconds=0", ""), del("again", "", ""),
		{Name: "create for collection", Method: "POST", Path: s.Collection, Body: s.body()},
		{Name: "deletecollection", Method: "DELETE", Path: s.Collection + all + "&gracePeriodSeconds=0"},
		{Name: "list after", Method: "GET", Path: s.Collection + all},
	}
}
