package apiserver_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apijson "k8s.io/apimachinery/pkg/util/json"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"kontiki/internal/pki"
	"kontiki/internal/testcluster"
)

// The media types of patches.
const (
	jsonPatch      = "application/json-patch+json"
	mergePatch     = "application/merge-patch+json"
	strategicPatch = "application/strategic-merge-patch+json"
	applyPatch     = "application/apply-patch+yaml"
)

// frameTimeout bounds the wait for a watch frame; it is only met when a test fails.
const frameTimeout = time.Minute

// client sends plain HTTP requests, as curl would.
type client struct {
	t    testing.TB
	http *http.Client
	base string
}

func start(t testing.TB) (*testcluster.Cluster, *client) {
	t.Helper()
	cluster := testcluster.Start(t)
	return cluster, clientFor(t, cluster.REST(pki.Admin))
}

func clientFor(t testing.TB, config *rest.Config) *client {
	t.Helper()
	config = rest.CopyConfig(config)
	config.QPS = -1
	httpClient, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	t.Cleanup(func() { utilnet.CloseIdleConnectionsFor(httpClient.Transport) }) // or a stop waits a second for HTTP/2 to say good-bye
	return &client{t: t, http: httpClient, base: config.Host}
}

// answer is a response, read to its end.
type answer struct {
	t      testing.TB
	code   int
	header http.Header
	body   []byte
}

// do sends a request. headers are name, value, name, value.
func (c *client) do(method, path, body string, headers ...string) answer {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, strings.NewReader(body))
	require.NoError(c.t, err)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.http.Do(r)
	require.NoError(c.t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(c.t, err)
	return answer{t: c.t, code: resp.StatusCode, header: resp.Header, body: data}
}

func (c *client) get(path string, headers ...string) answer {
	return c.do("GET", path, "", headers...)
}
func (c *client) post(path, body string) answer { return c.do("POST", path, body) }
func (c *client) put(path, body string) answer  { return c.do("PUT", path, body) }
func (c *client) patch(path, kind, body string) answer {
	return c.do("PATCH", path, body, "Content-Type", kind)
}
func (c *client) delete(path, body string) answer { return c.do("DELETE", path, body) }

// ok fails the test unless the answer has one of the codes 200 and 201.
func (a answer) ok() answer {
	a.t.Helper()
	require.Contains(a.t, []int{200, 201}, a.code, string(a.body))
	return a
}

func (a answer) object() *unstructured.Unstructured {
	a.t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(a.t, apijson.Unmarshal(a.body, &u.Object), string(a.body)) // keeps integers
	return u
}

func (a answer) status() metav1.Status {
	a.t.Helper()
	var status metav1.Status
	require.NoError(a.t, json.Unmarshal(a.body, &status), string(a.body))
	require.Equal(a.t, "Status", status.Kind, string(a.body))
	return status
}

// fails requires a Status of the code and reason, whose message has text in it.
func (a answer) fails(code int, reason metav1.StatusReason, text string) {
	a.t.Helper()
	require.Equal(a.t, code, a.code, string(a.body))
	status := a.status()
	require.Equal(a.t, int32(code), status.Code)
	require.Equal(a.t, reason, status.Reason, status.Message)
	require.Contains(a.t, status.Message, text)
}

func (a answer) resourceVersion() string { return a.object().GetResourceVersion() }

// frame is one event of a JSON watch.
type frame struct {
	Type   string
	Object unstructured.Unstructured
}

func (f frame) String() string {
	return f.Type + ":" + f.Object.GetName()
}

// watch opens a JSON watch and returns its frames. The channel is closed when the stream ends.
func (c *client) watch(path string, headers ...string) <-chan frame {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), "GET", c.base+path, nil)
	require.NoError(c.t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.http.Do(r)
	require.NoError(c.t, err)
	if resp.StatusCode != 200 {
		data, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		require.Equal(c.t, 200, resp.StatusCode, string(data))
	}
	frames := make(chan frame)
	go func() {
		defer close(frames)
		defer resp.Body.Close()
		lines := bufio.NewReader(resp.Body)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			var f struct {
				Type   string
				Object map[string]any
			}
			if json.Unmarshal(bytes.TrimSpace(line), &f) != nil {
				return
			}
			select {
			case frames <- frame{f.Type, unstructured.Unstructured{Object: f.Object}}:
			case <-c.t.Context().Done():
				return
			}
		}
	}()
	return frames
}

// next waits for a frame.
func (c *client) next(frames <-chan frame) frame {
	c.t.Helper()
	select {
	case f, ok := <-frames:
		require.True(c.t, ok, "the watch ended")
		return f
	case <-time.After(frameTimeout):
		require.FailNow(c.t, "no frame came")
		return frame{}
	}
}

// take waits for n frames and returns them as "TYPE:name".
func (c *client) take(frames <-chan frame, n int) []string {
	c.t.Helper()
	var out []string
	for range n {
		out = append(out, c.next(frames).String())
	}
	return out
}

const maps = "/api/v1/namespaces/default/configmaps"

// configMap is the JSON of a ConfigMap; meta is more of its metadata, such as `"labels":{"a":"b"}`.
func configMap(name, meta string) string {
	if meta != "" {
		meta = "," + meta
	}
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q%s},"data":{"k":"v"}}`, name, meta)
}
