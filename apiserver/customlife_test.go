package apiserver_test

import (
	"context"
	"crypto"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"kontiki/apiserver"
	"kontiki/apiserver/registry"
	"kontiki/internal/definitions"
	"kontiki/internal/pki"
	"kontiki/raftstore"
)

// customWait bounds the wait for what definitions bring about, on a machine with much else to do.
const customWait = time.Minute

// renamed turns what is said of boats into what is said of another kind.
func renamed(n int, text string) string {
	return strings.NewReplacer("boats", fmt.Sprintf("boats%d", n), `"boat"`, fmt.Sprintf(`"boat%d"`, n), "Boat", fmt.Sprintf("Boat%d", n), `"bt"`, fmt.Sprintf(`"bt%d"`, n)).Replace(text)
}

// ownServer is a server with a store of its own, in the hands of the test.
func ownServer(t *testing.T) (*apiserver.Server, *client) {
	dir := t.TempDir()
	keys, err := pki.Open(dir+"/pki", pki.Options{NodeName: "n"})
	require.NoError(t, err)
	store, err := raftstore.Open(raftstore.Config{Dir: dir + "/store", NodeID: "n", Bootstrap: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	server, err := apiserver.New(apiserver.Config{
		KV: store, Table: registry.Builtin(registry.Options{}), TLS: keys.APIServing(), TokenKeys: []crypto.Signer{keys.AccountKeys().Signer},
	})
	require.NoError(t, err)
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { done <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
		server.Close()
	})
	eventually(t, server.Ready)
	admin := keys.Client(pki.Admin)
	return server, clientFor(t, &rest.Config{
		Host:            "https://" + listener.Addr().String(),
		TLSClientConfig: rest.TLSClientConfig{CAData: keys.CA(), CertData: admin.CertPEM, KeyData: admin.KeyPEM},
	})
}

// Definitions that come and go leave nothing: no goroutine, no cache, no memory. (KONTIKI_SOAK_DEFINITIONS: so many of them.)
func TestDefinitionsLeaveNothing(t *testing.T) {
	server, c := ownServer(t)
	hook := newConverter(t)
	number := 300
	if wish := os.Getenv("KONTIKI_SOAK_DEFINITIONS"); wish != "" {
		var err error
		number, err = strconv.Atoi(wish)
		require.NoError(t, err)
	}
	live := func(n int) {
		c := *c
		definition := boatDefinition(`"subresources":{"status":{}},`, `"masts":{"type":"integer","x-kubernetes-validations":[{"rule":"self < 10"}]}`)
		field := "masts"
		if n%10 == 0 {
			definition, field = hook.definition(), "size"
		}
		objects := renamed(n, boats)
		c.post(definitionsPath, renamed(n, definition)).ok()
		c.post(objects, renamed(n, boat("one", `,"spec":{"`+field+`":1}`))).ok()
		applied := c.patch(objects+"/one?fieldManager=me&force=true", applyPatch, renamed(n, boat("one", `,"spec":{"`+field+`":2}`))).ok()
		if n%10 == 0 {
			c.get(strings.Replace(objects, "/v1/", "/v2/", 1)).ok()
			c.get("/openapi/v2").ok()
		}
		events := c.watch(objects + "?watch=true&resourceVersion=" + applied.resourceVersion())
		c.delete(definitionsPath+renamed(n, "/boats.example.com"), "").ok()
		require.Equal(t, "DELETED:one", c.next(events).String())
		select {
		case _, more := <-events:
			require.False(t, more)
		case <-time.After(customWait):
			require.FailNow(t, "the watch goes on")
		}
		eventually(t, func() bool { return c.get(definitionsPath+renamed(n, "/boats.example.com")).code == 404 })
	}
	const workers = 8
	several := func(from, to int) {
		var running sync.WaitGroup
		for worker := range workers {
			running.Go(func() {
				for n := from + worker; n < to; n += workers {
					live(n)
				}
			})
		}
		running.Wait()
		nothing := apiserver.CustomLeftovers{}
		eventually(t, func() bool { server.ForgetRetired(); return server.CustomLeftovers() == nothing })
	}
	several(0, 20) // what exists once is made
	goroutines, memory := runtime.NumGoroutine(), heapInUse()
	several(20, 20+number)
	require.Empty(t, strings.Join(openAPIPathsOf(c, "example.com"), " "))
	eventually(t, func() bool { return runtime.NumGoroutine() <= goroutines+10 })
	const each = 40 << 10 // less than what is compiled for one
	require.Less(t, heapInUse(), memory+20<<20+uint64(number)*each)
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func openAPIPathsOf(c *client, group string) (paths []string) {
	c.t.Helper()
	for path := range c.get("/openapi/v3").ok().object().Object["paths"].(map[string]any) {
		if strings.Contains(path, group) {
			paths = append(paths, path)
		}
	}
	return paths
}

// A definition is changed by one while twenty write and watch its objects, on three servers: no write is lost, watches
// that end with the old definition go on where they were, and what the new one says holds on every server.
func TestDefinitionChangesUnderLoad(t *testing.T) {
	_, serve := sharedStore(t)
	servers := []*client{serve(), serve(), serve()}
	servers[0].post(definitionsPath, boatDefinition("", `"count":{"type":"integer"}`)).ok()
	const writers, changes = 20, 10
	var stop atomic.Bool
	var running sync.WaitGroup
	counts := make([]int64, writers)
	for w := range writers {
		c, name := *servers[w%3], fmt.Sprint("b", w)
		created := c.post(boats, boat(name, `,"spec":{"count":0}`)).ok().resourceVersion()
		running.Go(func() {
			for !stop.Load() {
				a := c.patch(boats+"/"+name, mergePatch, fmt.Sprintf(`{"spec":{"count":%d}}`, atomic.LoadInt64(&counts[w])+1))
				require.Equal(t, 200, a.code, string(a.body))
				atomic.AddInt64(&counts[w], 1)
			}
		})
		running.Go(func() { followBoat(t, servers[(w+1)%3], name, created, &stop, &counts[w]) })
	}
	for n := range changes {
		c := servers[n%3]
		c.patch(definitionsPath+"/boats.example.com", jsonPatch, fmt.Sprintf(
			`[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/sails%d","value":{"type":"integer"}}]`, n)).ok()
		for i, other := range servers {
			name, field := fmt.Sprintf("probe-%d-%d", n, i), fmt.Sprintf("sails%d", n)
			eventually(t, func() bool {
				a := other.post(boats+"?dryRun=All", boat(name, fmt.Sprintf(`,"spec":{%q:1}`, field)))
				return a.code == 201 && a.object().Object["spec"].(map[string]any)[field] != nil
			})
		}
	}
	stop.Store(true)
	running.Wait()
	for w := range writers {
		spec := servers[w%3].get(boats + "/" + fmt.Sprint("b", w)).ok().object().Object["spec"].(map[string]any)
		require.Equal(t, counts[w], spec["count"], "boat %d", w)
	}
}

// followBoat watches one object as an informer would, from one end of a watch to the next, and sees each count once and in order.
func followBoat(t *testing.T, c *client, name, revision string, stop *atomic.Bool, count *int64) {
	seen, end := int64(0), time.Time{}
	for {
		events := c.watch(boats + "?watch=true&fieldSelector=metadata.name%3D" + name + "&resourceVersion=" + revision)
		for open := true; open; {
			select {
			case f, more := <-events:
				if open = more; more {
					require.Equal(t, "MODIFIED:"+name, f.String())
					now := f.Object.Object["spec"].(map[string]any)["count"]
					require.EqualValues(t, seen+1, now)
					seen, revision = seen+1, f.Object.GetResourceVersion()
				}
			case <-time.After(20 * time.Millisecond):
			}
			if stop.Load() && end.IsZero() {
				end = time.Now().Add(customWait)
			}
			if !end.IsZero() && atomic.LoadInt64(count) == seen {
				return
			}
			require.True(t, end.IsZero() || time.Now().Before(end), "%s: the last of %d events is %d", name, atomic.LoadInt64(count), seen)
		}
	}
}

// A list in another version asks the webhook once for a page, and what was converted is remembered.
func TestConversionOfLists(t *testing.T) {
	_, c := start(t)
	hook := newConverter(t)
	c.post(definitionsPath, hook.definition()).ok()
	for i := range 60 {
		c.post(boats, boat(fmt.Sprintf("b%02d", i), fmt.Sprintf(`,"spec":{"size":%d}`, i))).ok()
	}
	const second = "/apis/example.com/v2/namespaces/default/boats"
	reviews := func(path string) (asked, objects int64) {
		t.Helper()
		asked, objects = hook.reviews.Load(), hook.objects.Load()
		items := c.get(path).ok().object().Object["items"].([]any)
		require.EqualValues(t, len(items)-1, items[len(items)-1].(map[string]any)["spec"].(map[string]any)["length"])
		return hook.reviews.Load() - asked, hook.objects.Load() - objects
	}
	asked, objects := reviews(second + "?limit=10")
	require.EqualValues(t, 1, asked)
	require.EqualValues(t, 10, objects)
	asked, objects = reviews(second)
	require.EqualValues(t, 1, asked)
	require.EqualValues(t, 50, objects)
	asked, _ = reviews(second)
	require.Zero(t, asked)

	down := hook.reviews.Load()
	lie := func(u *unstructured.Unstructured) { u.SetKind("Raft") }
	hook.lie.Store(&lie)
	c.post(boats, boat("late", "")).ok()
	a := c.get(second)
	require.Equal(t, 500, a.code)
	require.Contains(t, string(a.body), "conversion webhook for example.com/v1, Kind=Boat returned invalid converted object at index 0: invalid kind (expected Boat, received Raft)")
	require.EqualValues(t, 1, hook.reviews.Load()-down)
}

// A definition of the largest size is applied, and one that is over the limit of a request is not; three servers go on.
func TestAP31_SizesOfDefinitionsOnThreeServers(t *testing.T) {
	_, serve := sharedStore(t)
	servers := []*client{serve(), serve(), serve()}
	large, err := json.Marshal(definitions.Sized("Giant", definitions.Large))
	require.NoError(t, err)
	path := definitionsPath + "/giants." + definitions.Group + "?fieldManager=me"
	for i, c := range servers {
		next := strings.Replace(string(large), "at most 1000 replicas", fmt.Sprint("not more than ", i), 1)
		c.patch(path, applyPatch, next).ok()
	}
	padded := func(size int) string {
		text := string(large)
		return strings.Replace(text, `"at most 1000 replicas"`, `"`+strings.Repeat("x", size-len(text))+`"`, 1)
	}
	const limit = 3 << 20
	over := servers[0].patch(path, applyPatch, padded(limit+1024))
	over.fails(413, metav1.StatusReasonRequestEntityTooLarge, "limit is 3145728")
	under := servers[1].patch(path, applyPatch, padded(limit-1024))
	require.Contains(t, []int{200, 413, 422}, under.code, string(under.body[:min(len(under.body), 500)]))
	objects := "/apis/" + definitions.Group + "/v1/namespaces/default/giants"
	for i, c := range servers {
		c.post(objects, fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"Giant","metadata":{"name":"g%d"},"spec":{"replicas":2}}`, definitions.Group, i)).ok()
		for _, other := range servers {
			other.get(objects + "/" + fmt.Sprint("g", i)).ok()
		}
	}
}
