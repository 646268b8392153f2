package customresources

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apijson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// hostile are schemas, and objects to go with them.
var hostile = [][2]string{
	{`{"type":"object","properties":{"spec":{"type":"object","properties":{"n":{"type":"integer","default":3,"maximum":5}}}}}`, `{"spec":{"n":7,"m":1}}`},
	{`{"type":"object","x-kubernetes-preserve-unknown-fields":true}`, `{"spec":[[[[[[1]]]]]],"metadata":7}`},
	{`{"type":"object","properties":{"s":{"type":"string","pattern":"^(a+)+$(((a{0,500}){0,500}){0,500})"}}}`, `{"s":"` + strings.Repeat("a", 5000) + `b"}`},
	{`{"type":"object","properties":{"s":{"type":"string","pattern":"(a|a?)+$"}}}`, `{"s":"` + strings.Repeat("a", 5000) + `b"}`},
	{strings.Repeat(`{"type":"object","properties":{"a":`, 200) + `{"type":"string"}` + strings.Repeat("}}", 200), strings.Repeat(`{"a":`, 200) + `1` + strings.Repeat("}", 200)},
	{`{"type":"object","properties":{"l":{"type":"array","items":{"type":"object","properties":{"k":{"type":"string"}},"required":["k"]},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"]}}}`, `{"l":[{"k":"a"},{"k":"a"},{},7,null]}`},
	{`{"type":"object","properties":{"l":{"type":"array","maxItems":100,"items":{"type":"string","maxLength":10}}},"x-kubernetes-validations":[{"rule":"self.l.all(a, self.l.all(b, a == b))"}]}`, `{"l":[` + strings.Repeat(`"a",`, 99) + `"a"]}`},
	{`{"type":"object","properties":{"p":{"x-kubernetes-int-or-string":true},"e":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}}`, `{"p":1.5,"e":{"metadata":{"name":7}}}`},
	{`{"type":"object","properties":{"n":{"type":"string","nullable":true},"d":{"type":"object","default":{"x":1},"properties":{"x":{"type":"integer"}}}},"x-kubernetes-validations":[{"rule":"self.d.x >= oldSelf.d.x","messageExpression":"'a' + string(self.d.x)"}]}`, `{"n":null,"d":null}`},
	{`{"type":"object","additionalProperties":{"type":"string"}}`, `{"a":1}`},
	{`{"type":"object","properties":{"x":{"type":"number","multipleOf":0}}}`, `{"x":1e308}`},
}

// Most of what is hostile is let in, deep and costly patterns among it: this fails when a seed no longer gets to the code.
func TestHostileSchemas(t *testing.T) {
	var refused []int
	for i, pair := range hostile {
		if fuzzedDefinition([]byte(pair[0])) == nil {
			refused = append(refused, i)
		}
	}
	require.Equal(t, []int{2, 8, 9}, refused)
}

// Whatever schema validation lets in, and whatever objects come, nothing panics, and what has been made to fit stays so.
func FuzzSchemas(f *testing.F) {
	for _, pair := range hostile {
		f.Add([]byte(pair[0]), []byte(pair[1]))
	}
	f.Fuzz(func(t *testing.T, schema, object []byte) {
		d := fuzzedDefinition(schema)
		if d == nil {
			return
		}
		rows, err := New(d, Config{Load: func() (*apiextensionsv1.CustomResourceDefinition, error) { return d, nil }, Ending: func() bool { return false }})
		require.NoError(t, err)
		row := rows.Stored
		for _, v2 := range []bool{false, true} {
			_, err := row.Model(v2, func(reflect.Type) spec.Schema { return spec.Schema{} })
			require.NoError(t, err)
		}
		u := newObject(row.GroupVersionKind())
		if apijson.Unmarshal(object, &u.Object) != nil || u.Object == nil {
			return
		}
		u.SetGroupVersionKind(row.GroupVersionKind())
		if _, err := row.Strategy.Coerce(u); err != nil {
			return
		}
		row.Strategy.Default(u)
		again := u.DeepCopy()
		unknown, err := row.Strategy.Coerce(again)
		require.NoError(t, err)
		require.Empty(t, unknown)
		judgeFuzzed(t.Context(), rows, u, again)
	})
}

func judgeFuzzed(ctx context.Context, rows Rows, u, again *unstructured.Unstructured) {
	row := rows.Stored
	_ = row.Strategy.Validate(ctx, u)
	_ = row.Strategy.ValidateUpdate(ctx, again, u)
	_ = row.Subresource("status").Validate(ctx, again, u)
}

// fuzzedDefinition is one with a schema, or nil if the API would refuse it.
func fuzzedDefinition(schema []byte) *apiextensionsv1.CustomResourceDefinition {
	props := &apiextensionsv1.JSONSchemaProps{}
	if json.Unmarshal(schema, props) != nil {
		return nil
	}
	names := apiextensionsv1.CustomResourceDefinitionNames{Plural: "boats", Singular: "boat", Kind: "Boat", ListKind: "BoatList"}
	d := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "boats.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{Group: "example.com", Scope: apiextensionsv1.NamespaceScoped, Names: names,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: props},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}}},
		Status: apiextensionsv1.CustomResourceDefinitionStatus{AcceptedNames: names, StoredVersions: []string{"v1"}},
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(d)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&d.Spec)
	internal := &apiextensions.CustomResourceDefinition{}
	if apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(d, internal, nil) != nil {
		return nil
	}
	if len(validation.ValidateCustomResourceDefinition(context.Background(), internal)) > 0 {
		return nil
	}
	return d
}
