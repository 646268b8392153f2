package differential

import "slices"

// commands are what is posted to a subresource to have something done: tokens, evictions, bindings. All are dry runs.
func (s Subject) commands() []Step {
	var out []Step
	post := func(sub, name, query, body string) {
		if slices.Contains(s.Subresources[sub], "create") {
			out = append(out, Step{Name: sub + " " + name, Method: "POST", Path: s.one() + "/" + sub + "?dryRun=All" + query, Body: body})
		}
	}
	for sub, kind := range map[string]string{
		"token":    `"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1"`,
		"eviction": `"kind":"Eviction","apiVersion":"policy/v1"`,
		"binding":  `"kind":"Binding","apiVersion":"v1"`,
	} {
		subject := `,"metadata":{"name":"` + s.Object.GetName() + `"}`
		post(sub, "empty", "", "{}")
		post(sub, "null", "", "null")
		post(sub, "broken", "", "{")
		post(sub, "bare", "", `{`+kind+`}`)
		post(sub, "named", "", `{`+kind+subject+`}`)
		post(sub, "other name", "", `{`+kind+`,"metadata":{"name":"other"}}`)
		post(sub, "other kind", "", `{"kind":"Nope","apiVersion":"v1"}`)
		post(sub, "unknown field strict", "&fieldValidation=Strict", `{`+kind+subject+`,"nope":1}`)
		post(sub, "unknown field", "", `{`+kind+subject+`,"nope":1}`)
		post(sub, "dryRun bad", "&dryRun=x", `{`+kind+subject+`}`)
		if slices.Contains(s.Subresources[sub], "create") {
			out = append(out, Step{Name: sub + " of nothing", Method: "POST", Path: s.Collection + "/missing/" + sub + "?dryRun=All", Body: `{` + kind + `}`},
				Step{Name: sub + " get", Method: "GET", Path: s.one() + "/" + sub})
		}
	}
	token := func(name, spec string) {
		post("token", name, "", `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","spec":{`+spec+`}}`)
	}
	token("short", `"expirationSeconds":60`)
	token("long", `"expirationSeconds":8589934592`)
	token("longer", `"expirationSeconds":8589934593`)
	token("audiences", `"audiences":["a","b"],"expirationSeconds":600`)
	token("bound to nothing", `"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"missing"}`)
	token("bound to a kind", `"boundObjectRef":{"kind":"Nope","apiVersion":"v1","name":"x"}`)
	token("bound badly", `"boundObjectRef":{}`)
	post("eviction", "other uid", "", `{"metadata":{"name":"`+s.Object.GetName()+`"},"deleteOptions":{"preconditions":{"uid":"00000000-0000-0000-0000-000000000000"}}}`)
	post("eviction", "bad policy", "", `{"metadata":{"name":"`+s.Object.GetName()+`"},"deleteOptions":{"propagationPolicy":"x"}}`)
	post("binding", "no kind of target", "", `{"metadata":{"name":"`+s.Object.GetName()+`"},"target":{"name":"n"}}`)
	post("binding", "no name of target", "", `{"metadata":{"name":"`+s.Object.GetName()+`"},"target":{"kind":"Node"}}`)
	post("binding", "other target", "", `{"metadata":{"name":"`+s.Object.GetName()+`"},"target":{"kind":"Pod","name":"n"}}`)
	return out
}

// questions are posted to collections that keep nothing: reviews of who somebody is and what they may do.
func questions() []Step {
	var out []Step
	ask := func(path, kind string, bodies ...string) {
		group := map[string]string{"tokenreviews": "authentication", "selfsubjectreviews": "authentication"}[path]
		if group == "" {
			group = "authorization"
		}
		url := "/apis/" + group + ".k8s.io/v1/" + path
		if path == "localsubjectaccessreviews" {
			url = "/apis/authorization.k8s.io/v1/namespaces/" + namespace + "/" + path
		}
		head := `{"kind":"` + kind + `","apiVersion":"` + group + `.k8s.io/v1"`
		bodies = append(bodies, `,"spec":{}`, "", `,"spec":7`, `,"nope":1`, `,"metadata":{"name":"x"}`, `,"metadata":{"namespace":"x"}`)
		for _, body := range bodies {
			out = append(out, Step{Name: kind + " " + body, Method: "POST", Path: url, Body: head + body + "}"},
				Step{Name: kind + " dry " + body, Method: "POST", Path: url + "?dryRun=All&fieldValidation=Strict", Body: head + body + "}"})
		}
		out = append(out, Step{Name: kind + " list", Method: "GET", Path: url}, Step{Name: kind + " null", Method: "POST", Path: url, Body: "null"},
			Step{Name: kind + " yaml", Method: "POST", Path: url, Body: head + bodies[0] + "}", Accept: yamlType},
			Step{Name: kind + " table", Method: "POST", Path: url, Body: head + bodies[0] + "}", Accept: tableType})
	}
	const pods = `{"verb":"get","resource":"pods","namespace":"` + namespace + `"}`
	ask("selfsubjectreviews", "SelfSubjectReview")
	ask("tokenreviews", "TokenReview", `,"spec":{"token":"x"}`, `,"spec":{"token":"x","audiences":["a"]}`)
	ask("selfsubjectaccessreviews", "SelfSubjectAccessReview", `,"spec":{"resourceAttributes":`+pods+`}`, `,"spec":{"nonResourceAttributes":{"path":"/x","verb":"get"}}`,
		`,"spec":{"resourceAttributes":`+pods+`,"nonResourceAttributes":{"path":"/x"}}`,
		`,"spec":{"resourceAttributes":{"fieldSelector":{"rawSelector":"a=b","requirements":[{"key":"a","operator":"In","values":["b"]}]}}}`,
		`,"spec":{"resourceAttributes":{"labelSelector":{"requirements":[{"key":"a","operator":"Nope"}]}}}`)
	ask("subjectaccessreviews", "SubjectAccessReview", `,"spec":{"user":"u","resourceAttributes":`+pods+`}`, `,"spec":{"groups":["system:masters"],"resourceAttributes":`+pods+`}`,
		`,"spec":{"user":"u"}`, `,"spec":{"resourceAttributes":`+pods+`}`)
	ask("localsubjectaccessreviews", "LocalSubjectAccessReview", `,"metadata":{"namespace":"`+namespace+`"},"spec":{"user":"u","resourceAttributes":`+pods+`}`,
		`,"spec":{"user":"u","resourceAttributes":{"namespace":"other"}}`, `,"spec":{"user":"u","nonResourceAttributes":{"path":"/x"}}`)
	ask("selfsubjectrulesreviews", "SelfSubjectRulesReview", `,"spec":{"namespace":"`+namespace+`"}`)
	return out
}
