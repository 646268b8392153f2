package apiserver_test

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"kontiki/internal/testcluster"
)

// exit is kubectl's: it ends its process, which in a test is a goroutine's panic.
type exit struct {
	code    int
	message string
}

var kubectlExits = sync.OnceFunc(func() {
	cmdutil.BehaviorOnFatal(func(message string, code int) { panic(exit{code, message}) })
})

// kubectl runs kubectl's own code in this process, and returns what it prints and its exit code.
func kubectl(cluster *testcluster.Cluster, args ...string) (output string, code int) {
	kubectlExits()
	var out bytes.Buffer
	streams := genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out}
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(exit)
			if !ok {
				panic(r)
			}
			output, code = out.String()+e.message, e.code
		}
	}()
	command := cmd.NewKubectlCommand(cmd.KubectlOptions{IOStreams: streams, ConfigFlags: genericclioptions.NewConfigFlags(true)})
	command.SetArgs(append([]string{"--kubeconfig", cluster.Kubeconfig(), "--cache-dir", cluster.Dir + "/cache"}, args...))
	command.SetOut(&out)
	command.SetErr(&out)
	if err := command.Execute(); err != nil {
		return out.String() + err.Error(), 1
	}
	return out.String(), 0
}

// TestAP48_EventsAndDescribe: the selectors that kubectl describe and kubectl events use, and those that nobody may.
func TestAP48_EventsAndDescribe(t *testing.T) {
	cluster, c := start(t)
	const events = "/api/v1/namespaces/default/events"
	uid := string(c.post(pods, pod("p", "")).ok().object().GetUID())
	c.post(pods, pod("q", "")).ok()
	event := func(name, about, uid, reason, kind string) {
		c.post(events, fmt.Sprintf(`{"apiVersion":"v1","kind":"Event","metadata":{"name":%q},"type":%q,"reason":%q,"message":"msg-%[1]s","count":1,
			"source":{"component":"kt"},"involvedObject":{"apiVersion":"v1","kind":"Pod","name":%[4]q,"namespace":"default","uid":%[5]q}}`,
			name, kind, reason, about, uid)).ok()
	}
	event("e1", "p", uid, "One", "Normal")
	event("e2", "p", uid, "Two", "Warning")
	event("e3", "q", "other", "Three", "Normal")

	shown, code := kubectl(cluster, "describe", "pod", "p")
	require.Zero(t, code, shown)
	require.Contains(t, shown, "msg-e1")
	require.Contains(t, shown, "msg-e2")
	require.NotContains(t, shown, "msg-e3")
	shown, code = kubectl(cluster, "events", "--for", "pod/p")
	require.Zero(t, code, shown)
	require.Contains(t, shown, "msg-e1")
	require.NotContains(t, shown, "msg-e3")

	for selector, want := range map[string]string{
		"involvedObject.uid=" + uid:                      "e1 e2",
		"involvedObject.name=q":                          "e3",
		"involvedObject.kind=Pod,involvedObject.name!=p": "e3",
		"type=Warning,reason=Two":                        "e2",
		"reason!=One,involvedObject.name=p,source=kt":    "e2",
		"metadata.name=e1":                               "e1",
		"metadata.name!=e1":                              "e2 e3",
		"involvedObject.namespace=default,involvedObject.apiVersion=v1,source=kt": "e1 e2 e3",
		"involvedObject.kind=Node":                        "",
		"involvedObject.fieldPath=,involvedObject.name=q": "e3",
	} {
		require.Equal(t, want, listed(c, events, "fieldSelector", selector), selector)
	}
	require.Equal(t, "e3", listed(c, "/apis/events.k8s.io/v1/namespaces/default/events", "fieldSelector", "regarding.name=q"))

	for path, selector := range map[string]string{
		events: "message=x", maps: "data.k=v", pods: "spec.foo=x", deployments: "status.replicas=1",
		"/api/v1/namespaces/default/secrets": "spec.nodeName=x", "/api/v1/nodes": "metadata.labels=x",
	} {
		field, _, _ := strings.Cut(selector, "=")
		for _, watch := range []string{"", "&watch=true"} {
			c.get(path+"?fieldSelector="+url.QueryEscape(selector)+watch).fails(400, metav1.StatusReasonBadRequest, field)
		}
		c.delete(path+"?fieldSelector="+url.QueryEscape(selector), "").fails(400, metav1.StatusReasonBadRequest, field)
	}
	require.Equal(t, "e1 e2 e3", listed(c, events, "fieldSelector", "involvedObject.kind=Pod"), "nothing is deleted")
}

// The label selectors of AP-48.
func TestAP48_LabelSelectors(t *testing.T) {
	_, c := start(t)
	for i := range 4 {
		odd := ""
		if i%2 == 1 {
			odd = `,"odd":""`
		}
		c.post(maps, configMap(fmt.Sprintf("l%d", i), fmt.Sprintf(`"labels":{"n":"%d","set":"y"%s}`, i, odd))).ok()
	}
	for selector, want := range map[string]string{
		"set=y,n in (1,2)": "l1 l2", "set,n notin (1,2)": "l0 l3", "set,!odd": "l0 l2", "odd": "l1 l3", "odd=": "l1 l3",
		"set,n!=0": "l1 l2 l3", "set,n==3": "l3", "set,n>1": "l2 l3", "set,n<1": "l0",
	} {
		require.Equal(t, want, listed(c, maps, "labelSelector", selector), selector)
	}
	for _, selector := range []string{"a b", "n in 1", "n in (1", "=x", "n=a b", "-bad=x", "n>x"} {
		c.get(maps+"?labelSelector="+url.QueryEscape(selector)).fails(400, metav1.StatusReasonBadRequest, "")
	}
	require.Equal(t, "l1 l2 l3", listed(c, maps, "labelSelector=set&fieldSelector", "metadata.name!=l0"))
}

// listed are the names in a list with one more parameter.
func listed(c *client, path, parameter, value string) string {
	c.t.Helper()
	var names []string
	for _, item := range c.get(path + "?" + parameter + "=" + url.QueryEscape(value)).ok().object().Object["items"].([]any) {
		names = append(names, item.(map[string]any)["metadata"].(map[string]any)["name"].(string))
	}
	return strings.Join(names, " ")
}
