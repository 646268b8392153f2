package differential

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMutantsChangeOneValueEach(t *testing.T) {
	obj := map[string]any{"spec": map[string]any{"replicas": int64(1), "list": []any{map[string]any{"name": "a"}}}}
	paths := map[string]bool{}
	for _, m := range mutants(obj) {
		require.NotEqual(t, `{"spec":{"list":[{"name":"a"}],"replicas":1}}`, m.body)
		paths[m.path] = true
	}
	require.Equal(t, map[string]bool{"spec": true, "spec.replicas": true, "spec.list": true, "spec.list[0].name": true}, paths)
	require.Equal(t, map[string]any{"spec": map[string]any{"replicas": int64(1), "list": []any{map[string]any{"name": "a"}}}}, obj)
}

func TestCompareSeesThroughUidsAndTimes(t *testing.T) {
	body := func(uid, time, label string) answer {
		return answer{code: 200, header: http.Header{}, body: map[string]any{
			"metadata": map[string]any{"uid": uid, "creationTimestamp": time, "resourceVersion": uid[:1], "labels": map[string]any{"a": label}},
		}}
	}
	a := body("11111111-1111-1111-1111-111111111111", "2026-01-01T00:00:00Z", "x")
	require.Empty(t, compare(Scenario{}, Step{}, a, body("22222222-2222-2222-2222-222222222222", "2027-01-01T00:00:00Z", "x")))
	found := compare(Scenario{}, Step{}, a, body("22222222-2222-2222-2222-222222222222", "2027-01-01T00:00:00Z", "y"))
	require.Equal(t, []Difference{{Path: "metadata.labels.a", Upstream: `"x"`, Kontiki: `"y"`}}, found)
}

// One difference that two resources show is one finding, under an id that does not depend on them.
func TestGroup(t *testing.T) {
	d := []Difference{
		{Scenario: "pods", Step: "get", Path: "message", Upstream: `no "pods"`, Kontiki: "x"},
		{Scenario: "nodes", Step: "get", Path: "message", Upstream: `no "nodes"`, Kontiki: "x"},
	}
	findings := Group(d, map[string]string{})
	require.Len(t, findings, 1)
	require.Equal(t, []string{"nodes", "pods"}, findings[0].Resources)
	require.Equal(t, Group(d[:1], map[string]string{})[0].ID, findings[0].ID)
}

func TestKnownDifferencesHaveReasons(t *testing.T) {
	data, err := os.ReadFile("testdata/known.tsv")
	require.NoError(t, err)
	known, err := ParseKnown(data)
	require.NoError(t, err)
	shown, err := os.ReadFile("../../docs/conformance.md")
	require.NoError(t, err)
	for _, k := range known {
		require.NotEmpty(t, k.Reason)
		require.Contains(t, string(shown), "- "+k.Reason+"\n", "docs/conformance.md shows them")
	}
	_, err = ParseKnown([]byte("no reason"))
	require.Error(t, err)
}

func TestManifestsParse(t *testing.T) {
	data, err := os.ReadFile("testdata/manifests.yaml")
	require.NoError(t, err)
	manifests, err := Manifests(data)
	require.NoError(t, err)
	require.Greater(t, len(manifests), 50)
	for _, m := range manifests {
		require.NotEmpty(t, m.GetName())
		require.NotEmpty(t, m.GetKind())
	}
}

// What one side has in addition is one difference; what follows it is compared with its like.
func TestAlign(t *testing.T) {
	event := func(kind, label string, rest string) any {
		return map[string]any{"type": kind, "object": map[string]any{"rest": rest, "metadata": map[string]any{"name": "n", "labels": map[string]any{"l": label}}}}
	}
	left := []any{event("MODIFIED", "1", "a"), event("MODIFIED", "2", "a"), event("DELETED", "2", "a")}
	right := []any{event("MODIFIED", "1", "b"), event("MODIFIED", "1", "c"), event("MODIFIED", "2", "a"), event("DELETED", "2", "a")}
	require.Equal(t, [][2]any{{left[0], right[0]}, {absent, right[1]}, {left[1], right[2]}, {left[2], right[3]}}, align(left, right))
	require.Equal(t, [][2]any{{"a", "b"}}, align([]any{"a"}, []any{"b"}))
	require.Empty(t, align(nil, nil))
}

// Of two long texts the part is shown where they begin to differ.
func TestShorten(t *testing.T) {
	long := strings.Repeat("x", 500)
	a, b := shorten(long+"1"+long, long+"2"+long)
	require.NotEqual(t, a, b)
	require.LessOrEqual(t, len(a), 310)
	a, b = shorten("short", long)
	require.Equal(t, "short", a)
	require.Equal(t, long[:300]+"…", b)
	a, _ = shorten(long, long+"2")
	require.Equal(t, "…"+long[:60], a)
}
