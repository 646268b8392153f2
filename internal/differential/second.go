package differential

// seconds are about two objects in one collection: pages, deletions of several, and what changes between two reads.
// They come after the updates, when the first object exists.
func (s Subject) seconds() []Step {
	if s.Second == "" {
		return nil
	}
	second := s.body(metadata("name", s.Second), func(obj map[string]any) {
		if spec, ok := obj["spec"].(map[string]any); ok {
			delete(spec, "podCIDR") // only one node can have it
			delete(spec, "podCIDRs")
		}
	})
	list := func(name, query, accept string) Step {
		return Step{Name: "two: " + name, Method: "GET", Path: s.Collection + "?labelSelector=differential%3Dyes&" + query, Accept: accept}
	}
	remove := func(name, query, body string) Step {
		return Step{Name: "two: " + name, Method: "DELETE", Path: s.Collection + "?labelSelector=differential%3Dyes" + query, Body: body}
	}
	options := func(fields string) string { return `{"kind":"DeleteOptions","apiVersion":"v1",` + fields + `}` }
	return []Step{
		{Name: "two: create", Method: "POST", Path: s.Collection, Body: second},
		list("list", "", ""), list("page 1", "limit=1", ""), list("page 2", "limit=1&continue={continue}", ""),
		list("page 2 and a revision", "limit=1&continue={continue}&resourceVersion=1", ""),
		list("page 2 and match", "limit=1&continue={continue}&resourceVersionMatch=Exact", ""),
		list("page 1 of a cached list", "limit=1&resourceVersion=0", ""), list("page 1 at a revision", "limit=1&resourceVersion={start}&resourceVersionMatch=Exact", ""),
		list("page 1 as table", "limit=1", tableType), list("page 2 as table", "limit=5&continue={continue}", tableType),
		list("page 1 as partial", "limit=1", partialList), list("page 1 as protobuf", "limit=1", protobufType),
		list("broken token", "limit=1&continue={continue}x", ""), list("name", "fieldSelector=metadata.name%3D"+s.Second, ""),
		list("not the name", "fieldSelector=metadata.name%21%3D"+s.Second, ""), list("since", "resourceVersion={rv}&resourceVersionMatch=NotOlderThan", ""),
		remove("delete dry", "&dryRun=All", ""), remove("delete bad policy", "&propagationPolicy=x", ""), remove("delete bad grace", "&gracePeriodSeconds=x", ""),
		remove("delete dry body", "", options(`"dryRun":["All"]`)), remove("delete broken body", "", "{"), remove("delete other kind", "", `{"kind":"Nope","apiVersion":"v1"}`),
		remove("delete both policies", "", options(`"dryRun":["All"],"propagationPolicy":"Orphan","orphanDependents":true`)),
		remove("delete other uid", "&dryRun=All", options(`"preconditions":{"uid":"00000000-0000-0000-0000-000000000000"}`)),
		remove("delete a page", "&limit=1&dryRun=All", ""), remove("delete bad limit", "&limit=x", ""), remove("delete bad field", "&fieldSelector=spec.nope%3D1", ""),
		remove("delete by name", "&fieldSelector=metadata.name%3D"+s.Second+"&gracePeriodSeconds=0", ""),
		{Name: "two: one is left", Method: "GET", Path: s.Collection + "?labelSelector=differential%3Dyes"},
	}
}
