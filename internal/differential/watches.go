package differential

// watches replay what the scenario did, from its first revision, for a second. They come last.
func (s Subject) watches() []Step {
	from := s.Collection + "?watch=true&timeoutSeconds=1&labelSelector=differential"
	out := []Step{
		{Name: "watch bad revision", Method: "GET", Path: from + "&resourceVersion=x"},
		{Name: "watch future revision", Method: "GET", Path: from + "&resourceVersion=99999999"},
		{Name: "watch bad match", Method: "GET", Path: from + "&resourceVersionMatch=Exact"},
		{Name: "watch initial events without match", Method: "GET", Path: from + "&sendInitialEvents=true"},
		{Name: "watch bad timeout", Method: "GET", Path: from + "x"},
		{Name: "watch bad field", Method: "GET", Path: from + "&fieldSelector=spec.nope%3D1"},
		{Name: "watch as yaml", Method: "GET", Path: from, Accept: yamlType},
		{Name: "watch", Method: "GET", Path: from + "&resourceVersion={start}"},
	}
	if s.Resource != "configmaps" && s.Resource != "deployments" {
		return out
	}
	return append(out,
		Step{Name: "watch leaving", Method: "GET", Path: s.Collection + "?watch=true&timeoutSeconds=1&labelSelector=more%3D1&resourceVersion={start}"},
		Step{Name: "watch as table", Method: "GET", Path: from + "&resourceVersion={start}", Accept: tableType},
		Step{Name: "watch as partial", Method: "GET", Path: from + "&resourceVersion={start}", Accept: partialType},
		Step{Name: "watch as html", Method: "GET", Path: from, Accept: "text/html"},
		Step{Name: "watch streamed list", Method: "GET", Path: from + "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"},
		Step{Name: "watch object", Method: "GET", Path: s.one() + "?watch=true&timeoutSeconds=1&resourceVersion={start}"})
}
