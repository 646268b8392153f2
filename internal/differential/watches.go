package differential

import "strings"

// watches replay what the scenario did, from its first revision, for a second. They come last.
func (s Subject) watches() []Step {
	from := s.Collection + "?watch=true&timeoutSeconds=1&labelSelector=differential"
	const streamed = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
	old := strings.Replace(s.Collection, "/v1/", "/v1/watch/", 1)
	out := []Step{
		{Name: "watch bad revision", Method: "GET", Path: from + "&resourceVersion=x"},
		{Name: "watch future revision", Method: "GET", Path: from + "&resourceVersion=99999999"},
		{Name: "watch bad match", Method: "GET", Path: from + "&resourceVersionMatch=Exact"},
		{Name: "watch initial events without match", Method: "GET", Path: from + "&sendInitialEvents=true"},
		{Name: "watch initial events without bookmarks", Method: "GET", Path: from + "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"},
		{Name: "watch initial events bad", Method: "GET", Path: from + "&sendInitialEvents=x"},
		{Name: "watch bad timeout", Method: "GET", Path: from + "x"},
		{Name: "watch bad field", Method: "GET", Path: from + "&fieldSelector=spec.nope%3D1"},
		{Name: "watch bad label", Method: "GET", Path: from + "%3D%3D%3D"},
		{Name: "watch continue", Method: "GET", Path: from + "&continue=x"},
		{Name: "watch bad limit", Method: "GET", Path: from + "&limit=x"},
		{Name: "watch as yaml", Method: "GET", Path: from, Accept: yamlType},
		{Name: "watch streamed list", Method: "GET", Path: from + streamed},
		{Name: "watch", Method: "GET", Path: from + "&resourceVersion={start}"},
	}
	if s.Resource != "configmaps" && s.Resource != "deployments" && s.Resource != "nodes" {
		return out
	}
	return append(out,
		Step{Name: "watch leaving", Method: "GET", Path: s.Collection + "?watch=true&timeoutSeconds=1&labelSelector=more%3D1&resourceVersion={start}"},
		Step{Name: "watch by name", Method: "GET", Path: s.Collection + "?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Dsubject&resourceVersion={start}"},
		Step{Name: "watch as table", Method: "GET", Path: from + "&resourceVersion={start}", Accept: tableType},
		Step{Name: "watch as table with objects", Method: "GET", Path: from + "&includeObject=Object&resourceVersion={start}", Accept: tableType},
		Step{Name: "watch as partial", Method: "GET", Path: from + "&resourceVersion={start}", Accept: partialType},
		Step{Name: "watch as partial list", Method: "GET", Path: from + "&resourceVersion={start}", Accept: partialList},
		Step{Name: "watch as html", Method: "GET", Path: from, Accept: "text/html"},
		Step{Name: "watch without initial events", Method: "GET", Path: from + strings.Replace(streamed, "=true", "=false", 1)},
		Step{Name: "watch streamed list as table", Method: "GET", Path: from + streamed, Accept: tableType},
		Step{Name: "watch streamed list as partial", Method: "GET", Path: from + streamed, Accept: partialType},
		Step{Name: "watch streamed list bad match", Method: "GET", Path: from + strings.Replace(streamed, "NotOlderThan", "Exact", 1)},
		Step{Name: "watch object", Method: "GET", Path: s.one() + "?watch=true&timeoutSeconds=1&resourceVersion={start}"},
		Step{Name: "watch by path", Method: "GET", Path: old + "?timeoutSeconds=1&labelSelector=differential&resourceVersion={start}"},
		Step{Name: "watch object by path", Method: "GET", Path: old + "/" + s.Object.GetName() + "?timeoutSeconds=1&resourceVersion={start}"})
}
