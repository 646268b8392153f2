package apiserver_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"kontiki/internal/pki"
)

const initialEvents = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"

// TestAP02_WatchStartsAfter: a watch from N shows what comes after N.
func TestAP02_WatchStartsAfter(t *testing.T) {
	_, c := start(t)
	from := c.post(maps, configMap("c", "")).ok().resourceVersion()
	all, one := c.watch(maps+"?watch=1&resourceVersion="+from), c.watch(maps+"?watch=1&fieldSelector=metadata.name%3Dc&resourceVersion="+from)
	changed := c.patch(maps+"/c", mergePatch, `{"data":{"k":"2"}}`).ok().resourceVersion()
	c.delete(maps+"/c", "").ok()
	for _, frames := range []<-chan frame{all, one} {
		first := c.next(frames)
		require.Equal(t, "MODIFIED:c", first.String())
		require.Equal(t, changed, first.Object.GetResourceVersion())
		require.Equal(t, "DELETED:c", c.next(frames).String())
	}
}

// A watch by its old URL, without ?watch=true: of a collection, and of one object.
func TestWatchPaths(t *testing.T) {
	_, c := start(t)
	from := c.post(maps, configMap("c", "")).ok().resourceVersion()
	all := c.watch("/api/v1/watch/namespaces/default/configmaps?resourceVersion=" + from)
	one := c.watch("/api/v1/watch/namespaces/default/configmaps/d?resourceVersion=" + from)
	c.patch(maps+"/c", mergePatch, `{"data":{"k":"2"}}`).ok()
	c.post(maps, configMap("d", "")).ok()
	require.Equal(t, []string{"MODIFIED:c", "ADDED:d"}, c.take(all, 2))
	require.Equal(t, []string{"ADDED:d"}, c.take(one, 1))
}

// TestStreamedListIsCompressed: what comes at once is compressed for a client that takes it, and what comes later still
// arrives when it happens.
func TestStreamedListIsCompressed(t *testing.T) {
	_, c := start(t)
	for i := range 20 {
		c.post(maps, configMap(fmt.Sprintf("m%d", i), "")).ok()
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.base+maps+"?"+initialEvents+"&timeoutSeconds=30", nil)
	require.NoError(t, err)
	request.Header.Set("Accept-Encoding", "gzip") // said here, Go's client leaves the body as it came
	response, err := c.http.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, "gzip", response.Header.Get("Content-Encoding"))
	require.Equal(t, "Accept-Encoding", response.Header.Get("Vary"))
	body, err := gzip.NewReader(response.Body)
	require.NoError(t, err)
	frames := json.NewDecoder(body)
	next := func() (f frame) {
		var raw struct {
			Type   string
			Object map[string]any
		}
		require.NoError(t, frames.Decode(&raw))
		return frame{raw.Type, unstructured.Unstructured{Object: raw.Object}}
	}
	for range 20 {
		require.Equal(t, "ADDED", next().Type)
	}
	end := next().Object
	require.Equal(t, "true", end.GetAnnotations()[metav1.InitialEventsAnnotationKey])
	for i := range 3 {
		c.post(maps, configMap(fmt.Sprintf("late%d", i), "")).ok()
		event := next()
		for event.Type == "BOOKMARK" {
			event = next()
		}
		require.Equal(t, fmt.Sprintf("ADDED:late%d", i), event.String())
	}
	plain := c.watch(maps+"?"+initialEvents, "Accept-Encoding", "identity")
	require.Equal(t, "ADDED", c.next(plain).Type)
}

// TestAP03_EndOfInitialEvents: the bookmark comes on every path: empty, filtered to nothing, Table.
func TestAP03_EndOfInitialEvents(t *testing.T) {
	_, c := start(t)
	for i := range 3 {
		c.post(maps, configMap(fmt.Sprintf("m%d", i), "")).ok()
	}
	at := c.get(maps).resourceVersion()
	for _, tc := range []struct {
		path, kind string
		objects    int
	}{
		{maps, "ConfigMap", 3},
		{maps + "?fieldSelector=metadata.name%3Dnope", "ConfigMap", 0},
		{"/api/v1/namespaces/default/secrets", "Secret", 0},
		{"/apis/apps/v1/deployments", "Deployment", 0},
	} {
		for _, rv := range []string{"", "&resourceVersion=0", "&resourceVersion=" + at} {
			t.Run(tc.path+rv, func(t *testing.T) {
				separator := "?"
				if tc.objects == 0 && tc.kind == "ConfigMap" {
					separator = "&"
				}
				frames := c.watch(tc.path + separator + initialEvents + rv)
				for range tc.objects {
					require.Equal(t, "ADDED", c.next(frames).Type)
				}
				end := c.next(frames)
				require.Equal(t, "BOOKMARK", end.Type)
				require.Equal(t, "true", end.Object.GetAnnotations()[metav1.InitialEventsAnnotationKey])
				require.Equal(t, tc.kind, end.Object.GetKind())
				require.NotEmpty(t, end.Object.GetResourceVersion())
			})
		}
	}
	table := c.watch(maps+"?"+initialEvents, "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	require.NotEmpty(t, c.next(table).Object.Object["columnDefinitions"], "the first frame has the columns")
	require.Empty(t, c.next(table).Object.Object["columnDefinitions"], "the others do not")
	require.Equal(t, "ADDED", c.next(table).Type)
	end := c.next(table)
	require.Equal(t, "BOOKMARK", end.Type)
	require.Equal(t, "Table", end.Object.GetKind())
	require.Contains(t, fmt.Sprint(end.Object.Object), metav1.InitialEventsAnnotationKey)
}

// TestAP11_SelectedWatch: leaving a selection is a deletion, entering it an addition.
func TestAP11_SelectedWatch(t *testing.T) {
	_, c := start(t)
	frames := c.watch(maps + "?watch=1&labelSelector=a%3Db&resourceVersion=" + c.get(maps).resourceVersion())
	c.post(maps, configMap("c", `"labels":{"a":"b"}`)).ok()
	left := c.patch(maps+"/c", mergePatch, `{"metadata":{"labels":{"a":"x"}}}`).ok().resourceVersion()
	c.patch(maps+"/c", mergePatch, `{"data":{"k":"unseen"}}`).ok()
	c.patch(maps+"/c", mergePatch, `{"metadata":{"labels":{"a":"b"}}}`).ok()
	c.delete(maps+"/c", "").ok()
	require.Equal(t, "ADDED:c", c.next(frames).String())
	gone := c.next(frames)
	require.Equal(t, "DELETED:c", gone.String())
	require.Equal(t, left, gone.Object.GetResourceVersion())
	require.Equal(t, map[string]string{"a": "b"}, gone.Object.GetLabels(), "the last state that was seen")
	require.Equal(t, []string{"ADDED:c", "DELETED:c"}, c.take(frames, 2))
}

func TestWatchEndsWithItsTime(t *testing.T) {
	_, c := start(t)
	frames := c.watch(maps + "?watch=1&timeoutSeconds=1&allowWatchBookmarks=true")
	for f := range frames { // until the server closes it
		require.Equal(t, "BOOKMARK", f.Type)
	}
}

// TestAP01_ExpiredWatch: a watch from before the compaction gets one ERROR frame, 410, and the end.
func TestAP01_ExpiredWatch(t *testing.T) {
	cluster, c := start(t)
	old := c.post(maps, configMap("c", "")).ok().resourceVersion()
	for i := range 20 {
		c.patch(maps+"/c", mergePatch, fmt.Sprintf(`{"data":{"k":"%d"}}`, i)).ok()
	}
	cluster.Compact(c.get(maps + "/c").resourceVersion())
	cluster.Restart() // so that no cache has the history any more
	c = clientFor(t, cluster.REST(pki.Admin))
	frames := c.watch(maps + "?watch=1&resourceVersion=" + old)
	first := c.next(frames)
	require.Equal(t, "ERROR", first.Type)
	require.Equal(t, "Expired", first.Object.Object["reason"])
	require.EqualValues(t, 410, first.Object.Object["code"])
	_, more := <-frames
	require.False(t, more, "the stream ends")
	c.get(maps+"?resourceVersionMatch=Exact&resourceVersion="+old).fails(410, metav1.StatusReasonExpired, "")
}

// Unmodified client-go informers, in both encodings and for metadata alone, see every change. Their
// reflectors stream the initial list (WatchList) by default.
func TestInformers(t *testing.T) {
	cluster, _ := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, contentType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		t.Run(contentType, func(t *testing.T) {
			config := cluster.REST(pki.Admin)
			config.ContentType = contentType
			client := kubernetes.NewForConfigOrDie(config)
			factory := informers.NewSharedInformerFactory(client, 0)
			seen := collect(t, factory.Core().V1().Secrets().Informer())
			factory.Start(ctx.Done())
			factory.WaitForCacheSync(ctx.Done())
			changeASecret(ctx, t, client, seen)
		})
	}
	t.Run("metadata", func(t *testing.T) {
		config := cluster.REST(pki.Admin)
		factory := metadatainformer.NewSharedInformerFactory(metadata.NewForConfigOrDie(config), 0)
		seen := collect(t, factory.ForResource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Informer())
		factory.Start(ctx.Done())
		factory.WaitForCacheSync(ctx.Done())
		changeASecret(ctx, t, kubernetes.NewForConfigOrDie(config), seen)
	})
}

func changeASecret(ctx context.Context, t *testing.T, client kubernetes.Interface, seen <-chan string) {
	secrets := client.CoreV1().Secrets("default")
	made, err := secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, "added s", <-seen)
	made.Labels = map[string]string{"a": "b"}
	_, err = secrets.Update(ctx, made, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, "updated s", <-seen)
	require.NoError(t, secrets.Delete(ctx, "s", metav1.DeleteOptions{}))
	require.Equal(t, "deleted s", <-seen)
}

func collect(t *testing.T, informer cache.SharedIndexInformer) <-chan string {
	seen := make(chan string, 16)
	name := func(obj any) string { return obj.(metav1.Object).GetName() }
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { seen <- "added " + name(obj) },
		UpdateFunc: func(_, obj any) { seen <- "updated " + name(obj) },
		DeleteFunc: func(obj any) { seen <- "deleted " + name(obj) },
	})
	require.NoError(t, err)
	return seen
}

// A stop ends watches at once and lets requests that are being served finish.
func TestStopEndsWatches(t *testing.T) {
	cluster, c := start(t)
	frames := c.watch(maps + "?" + initialEvents)
	require.Equal(t, "BOOKMARK", c.next(frames).Type)
	begin := time.Now()
	cluster.Restart()
	_, open := <-frames
	require.False(t, open)
	require.Less(t, time.Since(begin), frameTimeout)
	c.get(maps).ok()
}

// HTTP/1.1 and HTTP/2 both work, and so do many watches on one connection.
func TestProtocols(t *testing.T) {
	cluster, c := start(t)
	resp, err := c.http.Get(c.base + maps)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 2, resp.ProtoMajor)
	for range 300 {
		c.watch(maps + "?watch=1")
	}
	c.get(maps).ok()

	old := rest.CopyConfig(cluster.REST(pki.Admin))
	old.NextProtos = []string{"http/1.1"}
	httpClient, err := rest.HTTPClientFor(old)
	require.NoError(t, err)
	resp, err = httpClient.Get(c.base + maps)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, []int{1, http.StatusOK}, []int{resp.ProtoMajor, resp.StatusCode})
}
