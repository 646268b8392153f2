package differential

import (
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"
)

// What is peculiar to custom resources stands in testdata/customs.yaml: schemas that are tried as definitions, and
// sequences of requests about objects of the definitions in testdata/definitions.yaml.

// customs is that file.
type customs struct {
	// Schemas are tried one by one in a definition that is otherwise sound.
	Schemas []struct {
		Name   string         `json:"name"`
		Schema map[string]any `json:"schema"`
		// Version is more of the version, and Spec more of the definition.
		Version map[string]any `json:"version"`
		Spec    map[string]any `json:"spec"`
	} `json:"schemas"`
	Scenarios []struct {
		Name  string       `json:"name"`
		Steps []customStep `json:"steps"`
	} `json:"scenarios"`
}

// customStep is a Step; a body that is no text is sent as JSON.
type customStep struct {
	Name   string `json:"name"`
	Do     string `json:"do"` // GET, POST, PUT, DELETE, or a kind of PATCH in patchTypes
	Path   string `json:"path"`
	Body   any    `json:"body"`
	Accept string `json:"accept"`
}

// patchTypes are the kinds of PATCH that a customStep may do.
var patchTypes = map[string]string{
	"MERGE": "application/merge-patch+json", "JSON": "application/json-patch+json", "APPLY": "application/apply-patch+yaml", "STRATEGIC": "application/strategic-merge-patch+json",
}

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// Customs reads the scenarios of custom resources.
func Customs(data []byte) ([]Scenario, error) {
	var in customs
	if err := yaml.UnmarshalStrict(data, &in); err != nil {
		return nil, err
	}
	schemas := Scenario{Name: "schemas", Kind: "CustomResourceDefinition"}
	for _, s := range in.Schemas {
		body, err := json.Marshal(definitionWith(s.Schema, s.Version, s.Spec))
		if err != nil {
			return nil, err
		}
		schemas.Steps = append(schemas.Steps, Step{Name: s.Name, Method: "POST", Path: definitionsPath + "?dryRun=All", Body: string(body)})
	}
	out := []Scenario{schemas}
	for _, s := range in.Scenarios {
		scenario := Scenario{Name: s.Name, Kind: "Gadget"}
		for _, step := range s.Steps {
			made, err := step.step()
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", s.Name, step.Name, err)
			}
			scenario.Steps = append(scenario.Steps, made)
		}
		out = append(out, scenario)
	}
	return out, nil
}

func (s customStep) step() (Step, error) {
	out := Step{Name: s.Name, Method: s.Do, Path: s.Path, Accept: s.Accept}
	if kind, ok := patchTypes[s.Do]; ok {
		out.Method, out.ContentType = "PATCH", kind
	}
	switch body := s.Body.(type) {
	case nil:
	case string:
		out.Body = body
	default:
		data, err := json.Marshal(body)
		if err != nil {
			return out, err
		}
		out.Body = string(data)
	}
	return out, nil
}

// definitionWith is a definition with a schema below spec, and more.
func definitionWith(schema, version, spec map[string]any) map[string]any {
	v := map[string]any{"name": "v1", "served": true, "storage": true}
	if schema != nil {
		v["schema"] = map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"spec": schema}}}
	}
	for key, value := range version {
		v[key] = value
	}
	s := map[string]any{
		"group": "tried.example.com", "scope": "Namespaced", "versions": []any{v},
		"names": map[string]any{"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
	}
	for key, value := range spec {
		s[key] = value
	}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "things.tried.example.com"}, "spec": s,
	}
}
