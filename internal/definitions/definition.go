package definitions

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Group is that of every definition here.
const Group = "bench.kontiki.example"

// Typical and Large are the sizes of definitions, in bytes of JSON: that of an ordinary one, and that of the largest
// that are in use (Argo CD's ApplicationSet, 1.4 MB as YAML).
const (
	Typical = 30 << 10
	Large   = 350 << 10
)

// largeWrapping are the objects around the pod of a definition beyond a typical one: with them it is 35 levels deep.
const largeWrapping = 3

// Sized is a definition of a kind ("Widget") whose JSON takes about size bytes. Its objects are namespaced, have a status
// and a scale, and are valid with nothing in them but a name.
func Sized(kind string, size int) *apiextensionsv1.CustomResourceDefinition {
	singular := strings.ToLower(kind)
	plural := singular + "s"
	out := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: singular, Kind: kind, ListKind: kind + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: schemaOf(size)},
				Subresources: &apiextensionsv1.CustomResourceSubresources{
					Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
					Scale:  &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas"},
				},
				AdditionalPrinterColumns: []apiextensionsv1.CustomResourceColumnDefinition{{Name: "Replicas", Type: "integer", JSONPath: ".spec.replicas"}},
			}},
		},
	}
	return out
}

// schemaOf is that of an object with a pod in its spec, which is cut off at size.
func schemaOf(size int) *apiextensionsv1.JSONSchemaProps {
	r := reflector{left: size}
	pod := r.schemaOf(typeOf[corev1.PodTemplateSpec]())
	claims := r.schemaOf(typeOf[[]corev1.PersistentVolumeClaim]())
	wrapping := 0
	if size > Typical {
		wrapping = largeWrapping
	}
	for range wrapping {
		pod = object(map[string]apiextensionsv1.JSONSchemaProps{"template": pod})
	}
	replicas := apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "int32", Minimum: new(float64)}
	spec := object(map[string]apiextensionsv1.JSONSchemaProps{"replicas": replicas, "template": pod, "volumeClaimTemplates": claims, "data": {Type: "string"}})
	spec.XValidations = apiextensionsv1.ValidationRules{{Rule: "!has(self.replicas) || self.replicas <= 1000", Message: "at most 1000 replicas"}}
	out := object(map[string]apiextensionsv1.JSONSchemaProps{
		"apiVersion": {Type: "string"}, "kind": {Type: "string"}, "metadata": {Type: "object"},
		"spec":   spec,
		"status": object(map[string]apiextensionsv1.JSONSchemaProps{"replicas": replicas}),
	})
	return &out
}

func object(properties map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties}
}
