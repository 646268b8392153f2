package openapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/util/proto/validation"
	"k8s.io/kube-openapi/pkg/validation/spec"
	explain "k8s.io/kubectl/pkg/explain/v2"
	openapiutil "k8s.io/kubectl/pkg/util/openapi"

	"kontiki/apiserver/discovery"
	"kontiki/apiserver/registry"
)

func serveAll(t *testing.T) (*httptest.Server, *clientdiscovery.DiscoveryClient) {
	table := registry.Builtin(registry.Options{})
	base, mux := NewBase(table), http.NewServeMux()
	mux.Handle("/openapi/v3", V3Handler(table, base, nil))
	mux.Handle("/openapi/v3/", V3Handler(table, base, nil))
	mux.Handle("/openapi/v2", V2Handler(table, base, nil))
	mux.Handle("/", discovery.Handler(table, nil, http.NotFoundHandler()))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server, clientdiscovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: server.URL})
}

func explained(t *testing.T, client openapi.Client, gvr schema.GroupVersionResource, recursive bool, fields ...string) string {
	var out bytes.Buffer
	require.NoError(t, explain.PrintModelDescription(fields, &out, client, gvr, recursive, 0, "plaintext"))
	return out.String()
}

var (
	pods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// What kubectl explain prints, through kubectl's own code.
func TestExplain(t *testing.T) {
	_, client := serveAll(t)
	docs := client.OpenAPIV3()

	spec := explained(t, docs, deployments, false, "spec")
	require.Contains(t, spec, "KIND:       Deployment")
	require.Contains(t, spec, "FIELD: spec <DeploymentSpec>")
	require.Regexp(t, `selector\s+<LabelSelector> -required-`, spec)
	require.Regexp(t, `replicas\s+<integer>`, spec)
	require.Contains(t, spec, "Number of desired pods.")

	all := explained(t, docs, pods, true)
	for _, want := range []string{
		"containers\t<[]Container> -required-", "image\t<string>", "limits\t<map[string]Quantity>",
		"creationTimestamp\t<string>", "port\t<IntOrString> -required-", "podIPs\t<[]PodIP>",
	} {
		require.Contains(t, all, want)
	}
	require.Contains(t, explained(t, docs, pods, false, "spec", "containers", "livenessProbe", "httpGet", "port"), "FIELD: port <IntOrString>")
	require.Contains(t, explained(t, docs, pods, false, "spec", "restartPolicy"), "ENUM:\n    Always\n    Never\n    OnFailure")
}

// Every row can be explained.
func TestEveryRowIsDescribed(t *testing.T) {
	_, client := serveAll(t)
	for _, r := range registry.Builtin(registry.Options{}).Resources() {
		text := explained(t, client.OpenAPIV3(), r.GroupVersionResource, false)
		require.Contains(t, text, "KIND:       "+r.Kind)
		require.Contains(t, text, "metadata\t<ObjectMeta>", r.Resource)
		require.NotContains(t, text, "<empty>", r.Resource)
	}
}

// kubectl apply looks here whether the server validates fields itself (through protobuf).
func TestServerSideFieldValidationIsAnnounced(t *testing.T) {
	_, client := serveAll(t)
	verifier := resource.NewQueryParamVerifierV3(nil, client.OpenAPIV3(), resource.QueryParamFieldValidation)
	for _, r := range registry.Builtin(registry.Options{}).Resources() {
		if r.Answers == nil { // what is not stored is not patched
			require.NoError(t, verifier.HasSupport(r.GroupVersionKind()), r.Resource)
		}
	}
}

// Merging is described as Kubernetes describes it.
func TestMergeMarkers(t *testing.T) {
	_, client := serveAll(t)
	doc, err := openapi3.NewRoot(client.OpenAPIV3()).GVSpec(schema.GroupVersion{Version: "v1"})
	require.NoError(t, err)
	property := func(typeName, field string) spec.Schema {
		return doc.Components.Schemas["io.k8s.api.core.v1."+typeName].Properties[field]
	}
	containers := property("PodSpec", "containers")
	require.Equal(t, "merge", containers.Extensions["x-kubernetes-patch-strategy"])
	require.Equal(t, "name", containers.Extensions["x-kubernetes-patch-merge-key"])
	require.Equal(t, "map", containers.Extensions["x-kubernetes-list-type"])
	ports := property("Container", "ports")
	require.Equal(t, []any{"containerPort", "protocol"}, ports.Extensions["x-kubernetes-list-map-keys"])
	require.Equal(t, "TCP", property("ContainerPort", "protocol").Default)
	selector := property("PodSpec", "nodeSelector")
	require.Equal(t, "atomic", selector.Extensions["x-kubernetes-map-type"])
	data := property("Secret", "data")
	require.Equal(t, "byte", data.AdditionalProperties.Schema.Format)
}

// Objects as a real server returned them (AP-44's recording) fit the v2 schemas by the validation
// that kubectl up to 1.32 runs itself; a typo does not.
func TestClientSideValidation(t *testing.T) {
	_, client := serveAll(t)
	doc, err := client.OpenAPISchema()
	require.NoError(t, err)
	resources, err := openapiutil.NewOpenAPIData(doc)
	require.NoError(t, err)
	recorded, err := os.ReadFile("../registry/testdata/ap44.json")
	require.NoError(t, err)
	var objects map[string]map[string]any
	require.NoError(t, json.Unmarshal(recorded, &objects))
	for name, obj := range objects {
		if spec, ok := obj["spec"].(map[string]any); ok { // the recording replaced what differs per run
			delete(spec, "clusterIPs")
			if ports, ok := spec["ports"].([]any); ok {
				delete(ports[0].(map[string]any), "nodePort")
			}
		}
		gvk := schema.FromAPIVersionAndKind(obj["apiVersion"].(string), obj["kind"].(string))
		model := resources.LookupResource(gvk)
		require.NotNil(t, model, name)
		require.Empty(t, validation.ValidateModel(obj, model, gvk.Kind), name)
	}
	pod := objects["Pod"]
	pod["spec"].(map[string]any)["contaners"] = 1
	faults := validation.ValidateModel(pod, resources.LookupResource(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}), "Pod")
	require.Len(t, faults, 1)
	require.ErrorContains(t, faults[0], `unknown field "contaners"`)
}

func fetch(t *testing.T, url string, header map[string]string) (*http.Response, []byte) {
	request, err := http.NewRequest("GET", url, nil)
	require.NoError(t, err)
	for key, value := range header {
		request.Header.Set(key, value)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	var body bytes.Buffer
	_, err = body.ReadFrom(response.Body)
	require.NoError(t, err)
	return response, body.Bytes()
}

func TestHashedURLs(t *testing.T) {
	server, _ := serveAll(t)
	_, body := fetch(t, server.URL+"/openapi/v3", nil)
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	require.NoError(t, json.Unmarshal(body, &index))
	url := server.URL + index.Paths["apis/apps/v1"].ServerRelativeURL

	response, _ := fetch(t, url, nil)
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Contains(t, response.Header.Get("Cache-Control"), "immutable")
	again, _ := fetch(t, url, map[string]string{"If-None-Match": response.Header.Get("ETag")})
	require.Equal(t, http.StatusNotModified, again.StatusCode)
	old, _ := fetch(t, server.URL+"/openapi/v3/apis/apps/v1?hash=old", nil)
	require.Equal(t, http.StatusMovedPermanently, old.StatusCode)
	require.True(t, strings.HasSuffix(url, old.Header.Get("Location")))
	missing, _ := fetch(t, server.URL+"/openapi/v3/apis/nope/v1", nil)
	require.Equal(t, http.StatusNotFound, missing.StatusCode)
	refused, _ := fetch(t, url, map[string]string{"Accept": "text/html"})
	require.Equal(t, http.StatusNotAcceptable, refused.StatusCode)
}

// The v2 document in protobuf, as kubectl and the conformance tests read it.
func TestV2(t *testing.T) {
	server, client := serveAll(t)
	doc, err := client.OpenAPISchema()
	require.NoError(t, err)
	resources, err := openapiutil.NewOpenAPIData(doc)
	require.NoError(t, err)
	pod := resources.LookupResource(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	require.NotNil(t, pod)

	response, body := fetch(t, server.URL+"/openapi/v2", map[string]string{"Accept": protobufV2a})
	require.Equal(t, protobufV2, response.Header.Get("Content-Type"))
	require.NoError(t, proto.Unmarshal(body, &openapi_v2.Document{}))
	again, _ := fetch(t, server.URL+"/openapi/v2", map[string]string{"If-None-Match": response.Header.Get("ETag")})
	require.Equal(t, http.StatusNotModified, again.StatusCode)
}
