package apiserver

import (
	"testing"

	"github.com/stretchr/testify/require"
	apijson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// manifests are read alike whether they are JSON or not.
var manifests = []string{
	`{"a":1,"b":[1,2,{"c":null}],"d":"x","e":true,"f":9007199254740993}`, `{"a":1.0}`, `{"a":1e3,"b":1.5}`, `{"a":18446744073709551615}`, ` {"a":{}}`,
	`{"a":1,"a":2}`, `{"a":{"b":1,"b":2}}`, `{a: 1}`, `{"a":1,}`, `{"a":"\u00e9 \/ \t"}`, "a: 1\nb: [x, 'y']\n", "a: 1\na: 2\n", "a: 0x10\nb: 1.0\nc: no\n",
	`{`, `[1]`, `null`, ``, `"x"`, "a: {b: 1", "{\"a\":1}\n---\n{\"b\":2}", "- a\n", "1: x\n", "a: !!binary aGk=\n",
}

func FuzzManifests(f *testing.F) {
	for _, m := range manifests {
		f.Add([]byte(m))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		object, fault, err := decodeManifest(body)
		data, yamlErr := yaml.YAMLToJSON(body)
		want := map[string]any{}
		if yamlErr == nil {
			yamlErr = apijson.Unmarshal(data, &want)
		}
		if yamlErr != nil { // YAML does not know the pairs of escapes that JSON has for what is beyond 16 bits
			return
		}
		require.NoError(t, err)
		require.Equal(t, want, object)
		require.Equal(t, yaml.UnmarshalStrict(body, &map[string]any{}) != nil, fault != nil)
	})
}
