package openapidiff

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const wanted = `{"definitions":{
	"a":{"description":"A.","type":"object","required":["x","y"],
		"x-kubernetes-group-version-kind":[{"group":"","version":"v1","kind":"A"},{"group":"","version":"v2","kind":"A"}],
		"properties":{"x":{"description":"X.","type":"string"},"y":{"$ref":"#/definitions/b"}}},
	"b":{"type":"string"},
	"c":{"type":"string"}}}`

const found = `{"components":{"schemas":{
	"a":{"description":"Other words.","type":"object","required":["y","x"],
		"x-kubernetes-group-version-kind":[{"group":"","version":"v1","kind":"A"}],
		"properties":{"x":{"type":"integer"},"y":{"$ref":"#/definitions/b"},"z":{}}}}}}`

func TestCompare(t *testing.T) {
	v1 := func(_, version, _ string) bool { return version == "v1" }
	a, err := Parse([]byte(found))
	require.NoError(t, err)
	b, err := Parse([]byte(wanted))
	require.NoError(t, err)
	require.Equal(t, []string{
		"a.properties.x: no description",
		`a.properties.x.type: "integer", want "string"`,
		"a.properties.z: {}, want null",
		`b: null, want {"type":"string"}`, // c is referred to by nothing
	}, Compare(a.Kinds(v1), b.Kinds(v1)))
	require.Empty(t, Compare(b, b))
}
