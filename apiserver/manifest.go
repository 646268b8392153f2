package apiserver

import (
	"bytes"

	apijson "k8s.io/apimachinery/pkg/util/json"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// decodeManifest reads YAML, of which integers stay what they are. fault is that a field is given twice; the last one
// counts then.
func decodeManifest(body []byte) (object map[string]any, fault, err error) {
	if object := decodeJSONManifest(body); object != nil {
		return object, nil, nil
	}
	data, err := yaml.YAMLToJSONStrict(body)
	if err != nil { // once more, to find out what is wrong
		if data, err = yaml.YAMLToJSON(body); err != nil {
			return nil, nil, err
		}
		fault = yaml.UnmarshalStrict(body, &map[string]any{})
	}
	object = map[string]any{}
	return object, fault, apijson.Unmarshal(data, &object)
}

// decodeJSONManifest reads what is JSON, as nearly all that clients send is: a definition of 350 KB takes a sixth of the time. JSON is
// YAML, but for what is left to the reader of YAML here by returning nil: fields that are given twice, and numbers with a
// point or an exponent, which are integers in YAML if they have no fraction.
func decodeJSONManifest(body []byte) map[string]any {
	if !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
		return nil
	}
	object := map[string]any{}
	if faults, err := kjson.UnmarshalStrict(body, &object); err != nil || len(faults) > 0 || hasFraction(object) {
		return nil
	}
	return object
}

// hasFraction says whether there is a number that is not an integer in a document.
func hasFraction(value any) bool {
	switch value := value.(type) {
	case float64:
		return true
	case []any:
		for _, item := range value {
			if hasFraction(item) {
				return true
			}
		}
	case map[string]any:
		for _, member := range value {
			if hasFraction(member) {
				return true
			}
		}
	}
	return false
}
