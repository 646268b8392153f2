package registry

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"
)

// randomFuncs keep random schemas from growing without end: theirs is the one type that contains itself.
func randomFuncs(codecs serializer.CodecFactory) []any {
	return slices.Concat(metafuzzer.Funcs(codecs), []any{
		func(s *apiextensionsv1.JSONSchemaProps, c randfill.Continue) {
			c.Fill(&s.Type)
			c.Fill(&s.Format)
			c.Fill(&s.Description)
			c.Fill(&s.Nullable)
			c.Fill(&s.Required)
			c.Fill(&s.XListType)
			c.Fill(&s.XValidations)
			if c.Bool() {
				s.Properties = map[string]apiextensionsv1.JSONSchemaProps{"a": {Type: "string", Pattern: c.String(8)}}
			}
		},
		func(j *apiextensionsv1.JSON, c randfill.Continue) { j.Raw = []byte(`{"a":1}`) },
	})
}

var _ fuzzer.FuzzerFuncs = randomFuncs
