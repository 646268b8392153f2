package apiserver_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"kontiki/internal/pki"
)

// TestAP04_ListOptions: combinations that mean nothing get 422, values that cannot be read 400.
func TestAP04_ListOptions(t *testing.T) {
	_, c := start(t)
	for _, name := range []string{"a", "b", "c"} {
		c.post(maps, configMap(name, "")).ok()
	}
	token := c.get(maps + "?limit=1").ok().object().GetContinue()
	for query, code := range map[string]int{
		"sendInitialEvents=true":                                                422,
		"watch=1&sendInitialEvents=true":                                        422,
		"watch=1&resourceVersionMatch=NotOlderThan&resourceVersion=1":           422,
		"watch=1&sendInitialEvents=true&resourceVersionMatch=Exact":             422,
		"resourceVersionMatch=Exact":                                            422,
		"resourceVersionMatch=Exact&resourceVersion=0":                          422,
		"resourceVersionMatch=Bogus&resourceVersion=1":                          422,
		"resourceVersionMatch=NotOlderThan&resourceVersion=1&continue=" + token: 422,
		"resourceVersion=5&limit=1&continue=" + token:                           400,
		"resourceVersion=abc":                                                   400,
		"resourceVersion=-1":                                                    400,
		"watch=1&resourceVersion=abc":                                           400,
		"limit=abc":                                                             400,
		"timeoutSeconds=abc":                                                    400,
		"continue=garbage&limit=1":                                              400,
	} {
		answer := c.get(maps + "?" + query)
		require.Equal(t, code, answer.code, query)
		require.Equal(t, metav1.StatusFailure, answer.status().Status)
	}
	future := c.get(maps + "?resourceVersionMatch=NotOlderThan&resourceVersion=99999999999")
	future.fails(504, metav1.StatusReasonTimeout, "Too large resource version")
	require.Equal(t, metav1.CauseTypeResourceVersionTooLarge, future.status().Details.Causes[0].Type)
	require.NotEmpty(t, future.header.Get("Retry-After"))
}

// TestAP07_Pages: pages of any size add up to the list; tokens are checked.
func TestAP07_Pages(t *testing.T) {
	_, c := start(t)
	for i := range 7 {
		c.post(maps, configMap(fmt.Sprintf("s%d", i), fmt.Sprintf(`"labels":{"parity":"%d"}`, i%2))).ok()
	}
	for _, limit := range []int{1, 3, 7, 8} {
		var names []string
		for token := ""; ; {
			page := c.get(fmt.Sprintf("%s?limit=%d&continue=%s", maps, limit, token)).ok().object()
			items := page.Object["items"].([]any)
			for _, item := range items {
				names = append(names, item.(map[string]any)["metadata"].(map[string]any)["name"].(string))
			}
			if token = page.GetContinue(); token == "" {
				require.Nil(t, page.GetRemainingItemCount())
				break
			}
			require.EqualValues(t, 7-len(names), *page.GetRemainingItemCount())
		}
		require.Equal(t, []string{"s0", "s1", "s2", "s3", "s4", "s5", "s6"}, names, "limit %d", limit)
	}
	selected := c.get(maps + "?limit=2&labelSelector=parity%3D0").object() // AP-10
	require.NotEmpty(t, selected.GetContinue())
	require.Nil(t, selected.GetRemainingItemCount(), "not known with a selector")

	outside := base64.RawURLEncoding.EncodeToString([]byte(`{"v":"meta.k8s.io/v1","rv":1,"start":"../../x"}`))
	c.get(maps+"?limit=1&continue="+outside).fails(400, metav1.StatusReasonBadRequest, "")
}

// TestAP09_ExpiredPage: 410 with a token that goes on from the same place.
func TestAP09_ExpiredPage(t *testing.T) {
	cluster, c := start(t)
	for i := range 4 {
		c.post(maps, configMap(fmt.Sprintf("s%d", i), "")).ok()
	}
	token := c.get(maps + "?limit=2").object().GetContinue()
	c.delete(maps+"/s2", "").ok()
	cluster.Compact(c.patch(maps+"/s3", mergePatch, `{"data":{"k":"2"}}`).ok().resourceVersion())
	cluster.Restart() // so that no cache has the history any more
	c = clientFor(t, cluster.REST(pki.Admin))
	gone := c.get(maps + "?limit=2&continue=" + token)
	gone.fails(410, metav1.StatusReasonExpired, "continue")
	rest := c.get(maps + "?limit=2&continue=" + gone.status().Continue).ok().object()
	require.Len(t, rest.Object["items"], 1)
	require.Contains(t, string(c.get(maps+"?limit=2&continue="+gone.status().Continue).body), `"name":"s3"`)
}

// An object as it was, which Kubernetes shows in lists only.
func TestTimeTravel(t *testing.T) {
	_, c := start(t)
	then := c.post(maps, configMap("c", "")).ok()
	c.patch(maps+"/c", mergePatch, `{"data":{"k":"now"}}`).ok()
	c.delete(maps+"/c", "").ok()
	at := "?resourceVersionMatch=Exact&resourceVersion=" + then.resourceVersion()
	require.JSONEq(t, string(then.body), string(c.get(maps+"/c"+at).ok().body))
	require.Len(t, c.get(maps + at).ok().object().Object["items"], 1)
	require.Empty(t, c.get(maps).ok().object().Object["items"])
}

// Large lists are compressed for those who accept it, and are the same list.
func TestGzip(t *testing.T) {
	cluster, c := start(t)
	c.post(maps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"big"},"data":{"k":"`+strings.Repeat("x", 200_000)+`"}}`).ok()
	httpClient := clientFor(t, cluster.REST(pki.Admin)).http
	get := func(encoding string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), "GET", c.base+maps, nil)
		require.NoError(t, err)
		r.Header.Set("Accept-Encoding", encoding) // set by hand, Go does not decompress
		resp, err := httpClient.Do(r)
		require.NoError(t, err)
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	compressed := get("gzip, deflate")
	require.Equal(t, "gzip", compressed.Header.Get("Content-Encoding"))
	reader, err := gzip.NewReader(compressed.Body)
	require.NoError(t, err)
	unpacked, err := io.ReadAll(reader)
	require.NoError(t, err)
	plain := get("identity;q=1, gzip;q=0")
	require.Empty(t, plain.Header.Get("Content-Encoding"))
	whole, err := io.ReadAll(plain.Body)
	require.NoError(t, err)
	require.True(t, bytes.Equal(whole, unpacked))
}

func TestTableAndMetadata(t *testing.T) {
	_, c := start(t)
	c.post(maps, configMap("c", "")).ok()
	const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io"
	for _, path := range []string{maps, maps + "/c"} {
		answer := c.get(path, "Accept", asTable).ok()
		var table metav1.Table
		require.NoError(t, json.Unmarshal(answer.body, &table))
		require.Equal(t, "Name", table.ColumnDefinitions[0].Name)
		require.Equal(t, "c", table.Rows[0].Cells[0])
		require.NotEmpty(t, table.ResourceVersion)
	}
	c.get(maps+"?includeObject=Nonsense", "Accept", asTable).fails(400, metav1.StatusReasonBadRequest, "includeObject")
	partial := c.get(maps, "Accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io").ok()
	require.Equal(t, "PartialObjectMetadataList", partial.object().GetKind())
	require.Contains(t, string(partial.body), `"name":"c"`)
	require.NotContains(t, string(partial.body), `"data"`)
}

// TestAP46_Protobuf: client-go with protobuf bodies, and what a client that speaks only protobuf gets.
func TestAP46_Protobuf(t *testing.T) {
	cluster, c := start(t)
	config := cluster.REST(pki.Admin)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	client := kubernetes.NewForConfigOrDie(config)
	made, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "pb"}, Data: map[string]string{"k": "v"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	found, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "pb", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, made, found)
	list, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	_, err = client.CoreV1().ConfigMaps("default").Get(t.Context(), "none", metav1.GetOptions{})
	require.ErrorContains(t, err, `configmaps "none" not found`)

	missing := c.get(maps+"/none", "Accept", runtime.ContentTypeProtobuf)
	require.Equal(t, 404, missing.code)
	status, _, err := scheme.Codecs.UniversalDeserializer().Decode(missing.body, nil, nil)
	require.NoError(t, err)
	require.Equal(t, metav1.StatusReasonNotFound, status.(*metav1.Status).Reason)
	for _, broken := range []string{"k8s\x00\xff\xff\xff", "nope"} {
		c.do("POST", maps, broken, "Content-Type", runtime.ContentTypeProtobuf).fails(400, metav1.StatusReasonBadRequest, "")
	}
}
