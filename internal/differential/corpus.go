package differential

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// namespace is where the corpus makes its namespaced objects.
const namespace = "differential"

// A Step is one request. Path and Body may contain {rv}, {uid}, {start} and {continue}: the resourceVersion and
// uid of the object as this server last showed it, the first resourceVersion that the scenario saw, and the last
// continue token.
type Step struct {
	Name                string // with the scenario's name, the id of what differs
	Method, Path, Body  string
	ContentType, Accept string
}

// A Scenario is a sequence of requests about one resource. Scenarios are independent of each other.
type Scenario struct {
	Name  string // "deployments.apps"
	Kind  string // "Deployment"
	Steps []Step
}

// A Subject is a resource with an object to try it with.
type Subject struct {
	Resource     string // "deployments"
	Group        string
	Collection   string // the URL of the collection that the object belongs to
	Namespaced   bool
	Verbs        []string
	Subresources map[string][]string // name to verbs
	Object       *unstructured.Unstructured
	Second       string // a name for another object like it; "" if there can be only one
	Protobuf     string // the object in protobuf; "" of custom resources, which have no such form
	CBOR         string // and in CBOR
}

func (s Subject) name() string {
	if s.Group == "" {
		return s.Resource
	}
	return s.Resource + "." + s.Group
}

func (s Subject) one() string { return s.Collection + "/" + s.Object.GetName() }

// body is the subject's object after some edits, as JSON.
func (s Subject) body(edits ...func(map[string]any)) string {
	obj := s.Object.DeepCopy().Object
	for _, edit := range edits {
		edit(obj)
	}
	data, err := json.Marshal(obj)
	if err != nil {
		panic(fmt.Sprintf("a manifest that came from YAML has no JSON: %v", err))
	}
	return string(data)
}

func metadata(key string, value any) func(map[string]any) {
	return func(obj map[string]any) { obj["metadata"].(map[string]any)[key] = value }
}

func top(key string, value any) func(map[string]any) {
	return func(obj map[string]any) { obj[key] = value }
}

// Scenarios is the corpus for the subjects.
func Scenarios(subjects []Subject) []Scenario {
	out := []Scenario{documents(), {Name: "questions", Kind: "none", Steps: questions()}}
	for _, s := range subjects {
		out = append(out, Scenario{Name: s.name(), Kind: s.Object.GetKind(), Steps: s.steps()})
	}
	return out
}

// Select returns those scenarios whose names match only, with the steps whose names match steps.
func Select(scenarios []Scenario, only, steps *regexp.Regexp) []Scenario {
	var out []Scenario
	for _, s := range scenarios {
		if only.MatchString(s.Name) {
			s.Steps = slices.DeleteFunc(s.Steps, func(step Step) bool { return !steps.MatchString(step.Name) })
			out = append(out, s)
		}
	}
	return out
}

// steps runs an object through its life, with everything that can be asked on the way.
func (s Subject) steps() []Step {
	out := append(s.beforeCreate(), s.mutations("create", "POST", s.Collection)...)
	out = append(out, s.creates()...)
	out = append(out, s.reads()...)
	out = append(out, s.updates()...)
	out = append(out, s.patches()...)
	out = append(out, s.applies()...)
	out = append(out, s.applyMutations()...)
	out = append(out, s.forms()...)
	out = append(out, s.subresources()...)
	out = append(out, s.commands()...)
	out = append(out, s.seconds()...)
	out = append(out, s.mutations("update", "PUT", s.one())...)
	out = append(out, s.deletes()...)
	out = append(out, s.watches()...)
	if s.Protobuf == "" { // upstream's server panics on protobuf of a custom resource
		out = slices.DeleteFunc(out, func(step Step) bool { return step.ContentType == protobufType })
	}
	return out
}

// documents are the answers that concern no object.
func documents() Scenario {
	out := Scenario{Name: "documents", Kind: "none"}
	for _, path := range []string{"/version", "/healthz", "/livez", "/readyz", "/api", "/apis", "/api/v1", "/apis/apps", "/apis/apps/v1", "/apis/nope",
		"/apis/nope/v1", "/apis/apps/v9", "/api/v1/nope", "/api/v1/namespaces/default/nope/x", "/nope", "/openapi/v3", "/openapi/v3/nope", "/api/v1/pods/x"} {
		out.Steps = append(out.Steps, Step{Name: "GET " + path, Method: "GET", Path: path})
	}
	for _, path := range []string{"/api/v1/namespaces//pods?limit=1&labelSelector=x", "/api/v1//", "/apis/apps///", "/api//v1", "/api/v1/namespaces/" + namespace + "/pods/..",
		"/api/v1/namespaces/" + namespace + "/pods/%2e%2e", "/api/v1/namespaces/" + namespace + "/pods/a%25b", "/api/v1/namespaces/" + namespace + "/nodes", "/api/v1/nodes/x/nope",
		"/api/v1/namespaces/a//pods", "/api/v1/namespaces///pods", "/api/v1/namespaces/a/pods//status", "/readyz/ping", "/livez/ping", "/healthz?exclude=nope"} {
		out.Steps = append(out.Steps, Step{Name: "GET " + path, Method: "GET", Path: path})
	}
	for _, path := range []string{"/api/v1", "/apis/apps/v1", "/api/v1/pods"} {
		out.Steps = append(out.Steps, Step{Name: "POST " + path, Method: "POST", Path: path, Body: "{}"})
	}
	aggregated := "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
	out.Steps = append(out.Steps,
		Step{Name: "aggregated /api", Method: "GET", Path: "/api", Accept: aggregated},
		Step{Name: "aggregated /apis", Method: "GET", Path: "/apis", Accept: aggregated},
		Step{Name: "protobuf /apis", Method: "GET", Path: "/apis", Accept: "application/vnd.kubernetes.protobuf"},
		Step{Name: "POST /version", Method: "POST", Path: "/version", Body: "{}"},
		Step{Name: "POST object", Method: "POST", Path: "/api/v1/namespaces/default", Body: "{}"},
		Step{Name: "PUT collection", Method: "PUT", Path: "/api/v1/namespaces", Body: "{}"},
		Step{Name: "TRACE", Method: "OPTIONS", Path: "/api/v1/namespaces"},
		Step{Name: "HEAD", Method: "HEAD", Path: "/api/v1/namespaces/default"},
	)
	return out
}

// Manifests reads a YAML file of several documents.
func Manifests(data []byte) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for text := range strings.SplitSeq(string(data), "\n---\n") {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
			return nil, fmt.Errorf("manifest %d: %w", len(out), err)
		}
		if len(obj.Object) > 0 {
			out = append(out, obj)
		}
	}
	return out, nil
}
