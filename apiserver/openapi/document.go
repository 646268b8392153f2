package openapi

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"kontiki/apiserver/discovery"
	"kontiki/apiserver/registry"
)

// produces is what every operation with a typed answer can send.
var produces = []string{"application/json", "application/yaml", "application/vnd.kubernetes.protobuf"}

// typedRows are the rows with Go types.
func typedRows(table *registry.Table) []*registry.Resource {
	return slices.DeleteFunc(slices.Clone(table.Resources()), isCustom)
}

// Base is what all documents need of the rows with Go types, which neither come nor go. It is made when it is first
// needed: the schema of all those types is in it.
type Base struct {
	table *registry.Table
	once  sync.Once // makes what follows
	kinds map[reflect.Type][]schema.GroupVersionKind
	marks markers
}

// NewBase costs nothing yet.
func NewBase(table *registry.Table) *Base { return &Base{table: table} }

func (b *Base) fill() {
	b.kinds = map[reflect.Type][]schema.GroupVersionKind{}
	rows := typedRows(b.table)
	add := func(obj any, gvk schema.GroupVersionKind) {
		t := reflect.TypeOf(obj).Elem()
		if !slices.Contains(b.kinds[t], gvk) {
			b.kinds[t] = append(b.kinds[t], gvk)
		}
	}
	for _, r := range rows {
		gv := r.GroupVersion()
		add(r.New(), r.GroupVersionKind())
		if r.NewList != nil { // questions have none
			add(r.NewList(), gv.WithKind(r.Kind+"List"))
		}
		add(&metav1.DeleteOptions{}, gv.WithKind("DeleteOptions"))
		add(&metav1.WatchEvent{}, gv.WithKind("WatchEvent"))
		for _, sub := range r.Subresources {
			if sub.New != nil {
				add(sub.New(), sub.Kind)
			}
		}
	}
	add(&metav1.APIResourceList{}, schema.GroupVersionKind{Version: "v1", Kind: "APIResourceList"})
	add(&metav1.Status{}, schema.GroupVersionKind{Version: "v1", Kind: "Status"})
	if len(rows) > 0 {
		example := rows[0].New()
		example.GetObjectKind().SetGroupVersionKind(rows[0].GroupVersionKind())
		b.marks = newMarkers(applyconfigurations.NewTypeConverter(b.table.Scheme()), example)
	}
}

// schemas starts a document.
func (b *Base) schemas(d dialect) *schemas {
	b.once.Do(b.fill)
	return &schemas{dialect: d, byName: map[string]spec.Schema{}, kinds: maps.Clone(b.kinds), markers: b.marks}
}

// Models returns the definition of an object's type and of all that it refers to, as a field manager wants them.
func (b *Base) Models(obj runtime.Object) map[string]*spec.Schema {
	s := b.schemas(v3)
	s.refer(reflect.TypeOf(obj).Elem())
	return s.pointers()
}

// describe returns the paths of rows with Go types, and the definitions that they refer to, with those of more types. A
// document of one group version knows no other one.
func (b *Base) describe(d dialect, rows []*registry.Resource, gvs []schema.GroupVersion, more map[reflect.Type]bool) (map[string]any, map[string]spec.Schema) {
	s := b.schemas(d)
	if d.three {
		core := schema.GroupVersion{Version: "v1"}
		for _, t := range []reflect.Type{deleteOptions.Type, watchEvent.Type} { // of every group version; here this one and v1 count
			s.kinds[t] = slices.Compact([]schema.GroupVersionKind{core.WithKind(t.Name()), gvs[0].WithKind(t.Name())})
		}
	}
	paths := map[string]any{}
	for _, gv := range gvs {
		paths[rootOf(gv)+"/"] = s.path(discoveryOf(gv))
	}
	for _, r := range rows {
		for _, e := range endpointsOf(r) {
			paths[e.path] = s.path(e)
		}
	}
	for t := range more {
		s.refer(t)
	}
	return paths, s.byName
}

// path is an endpoint in the dialect.
func (s *schemas) path(e endpoint) any {
	if s.three {
		return pathV3(s, e)
	}
	return pathV2(s, e)
}

// pointers are the definitions, as OpenAPI v3 and field managers want them.
func (s *schemas) pointers() map[string]*spec.Schema {
	out := map[string]*spec.Schema{}
	for name, def := range s.byName {
		out[name] = &def
	}
	return out
}

func info() *spec.Info {
	return &spec.Info{InfoProps: spec.InfoProps{Title: "Kubernetes", Version: discovery.Version().GitVersion}}
}

func pathV3(s *schemas, e endpoint) *spec3.Path {
	out := &spec3.Path{}
	for _, p := range e.parameters {
		out.Parameters = append(out.Parameters, parameterV3(p))
	}
	for _, o := range e.operations {
		*slot(o.method, &out.Get, &out.Post, &out.Put, &out.Patch, &out.Delete) = operationV3(s, o)
	}
	return out
}

// slot is where a path keeps the operation of a method, in either version.
func slot[T any](method string, get, post, put, patch, del **T) **T {
	return map[string]**T{"GET": get, "POST": post, "PUT": put, "PATCH": patch, "DELETE": del}[method]
}

func operationV3(s *schemas, o operation) *spec3.Operation {
	op := &spec3.Operation{OperationProps: spec3.OperationProps{Description: o.summary, OperationId: o.id}}
	s.extend(op, o)
	for _, p := range o.parameters {
		op.Parameters = append(op.Parameters, parameterV3(p))
	}
	if o.body != nil {
		op.RequestBody = &spec3.RequestBody{RequestBodyProps: spec3.RequestBodyProps{
			Content: content(o.body.reference(s), o.consumes), Required: o.body != deleteOptions,
		}}
	}
	ok := &spec3.Response{ResponseProps: spec3.ResponseProps{Description: "OK"}}
	if o.answer != nil {
		ok.Content = content(o.answer.reference(s), produces)
	} else {
		ok.Content = content(*spec.StringProperty(), anyType)
	}
	op.Responses = &spec3.Responses{ResponsesProps: spec3.ResponsesProps{
		StatusCodeResponses: map[int]*spec3.Response{o.success: ok},
	}}
	return op
}

// extend says what an operation does to which kind; discovery is of none. It also describes what lists stream when they
// are watched, which no operation says.
func (s *schemas) extend(op interface{ AddExtension(string, any) }, o operation) {
	if o.action == "" {
		return
	}
	op.AddExtension("x-kubernetes-action", o.action)
	op.AddExtension("x-kubernetes-group-version-kind", kindExtension(o.kind))
	if o.action == "list" {
		watchEvent.reference(s)
	}
}

func content(body spec.Schema, types []string) map[string]*spec3.MediaType {
	out := map[string]*spec3.MediaType{}
	for _, t := range types {
		out[t] = &spec3.MediaType{MediaTypeProps: spec3.MediaTypeProps{Schema: &body}}
	}
	return out
}

func parameterV3(p parameter) *spec3.Parameter {
	return &spec3.Parameter{ParameterProps: spec3.ParameterProps{
		Name: p.name, In: p.in, Description: p.description, Required: p.in == "path",
		Schema: &spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{p.kind}}},
	}}
}

func pathV2(s *schemas, e endpoint) spec.PathItem {
	var out spec.PathItem
	for _, p := range e.parameters {
		out.Parameters = append(out.Parameters, parameterV2(p))
	}
	for _, o := range e.operations {
		*slot(o.method, &out.Get, &out.Post, &out.Put, &out.Patch, &out.Delete) = operationV2(s, o)
	}
	return out
}

func operationV2(s *schemas, o operation) *spec.Operation {
	op := &spec.Operation{OperationProps: spec.OperationProps{
		ID: o.id, Description: o.summary, Consumes: o.consumes, Schemes: []string{"https"},
	}}
	s.extend(op, o)
	for _, p := range o.parameters {
		op.Parameters = append(op.Parameters, parameterV2(p))
	}
	if o.body != nil {
		body := o.body.reference(s)
		op.Parameters = append(op.Parameters, spec.Parameter{ParamProps: spec.ParamProps{
			Name: "body", In: "body", Required: o.body != deleteOptions, Schema: &body,
		}})
	}
	answer := *spec.StringProperty()
	if o.answer != nil {
		answer, op.Produces = o.answer.reference(s), produces
	}
	op.Responses = &spec.Responses{ResponsesProps: spec.ResponsesProps{StatusCodeResponses: map[int]spec.Response{
		o.success: {ResponseProps: spec.ResponseProps{Description: "OK", Schema: &answer}},
	}}}
	return op
}

func parameterV2(p parameter) spec.Parameter {
	return spec.Parameter{
		ParamProps:   spec.ParamProps{Name: p.name, In: p.in, Description: p.description, Required: p.in == "path"},
		SimpleSchema: spec.SimpleSchema{Type: p.kind},
	}
}

// groupVersions of rows, in their order.
func groupVersions(rows []*registry.Resource) []schema.GroupVersion {
	var out []schema.GroupVersion
	known := map[schema.GroupVersion]bool{}
	for _, r := range rows {
		if gv := r.GroupVersion(); !known[gv] {
			known[gv] = true
			out = append(out, gv)
		}
	}
	return out
}

// pathOf is where a group version is served, without the leading slash: "api/v1", "apis/apps/v1".
func pathOf(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.String()
}

func quote(hash string) string { return strconv.Quote(hash) }
