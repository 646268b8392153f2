package table

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kontiki/apiserver/registry"
)

// Options of a request for a Table.
type Options struct {
	// Include says what travels beside the cells: the object's metadata (the default), all of it, or nothing.
	Include metav1.IncludeObjectPolicy
	// NoHeaders leaves the column definitions out.
	NoHeaders bool
	// ListMeta of the answer: the list's, or the resourceVersion of a single object.
	ListMeta metav1.ListMeta
	// Version of meta.k8s.io that the Table and the metadata beside its rows are in; empty means v1. The versions are alike.
	Version string
	// Now is what ages are measured to.
	Now time.Time
}

func (o Options) apiVersion() string { return metav1.GroupName + "/" + cmp.Or(o.Version, "v1") }

// ParseOptions reads includeObject from the query of a request.
func ParseOptions(query url.Values, now time.Time) (Options, error) {
	include := metav1.IncludeObjectPolicy(query.Get("includeObject"))
	switch include {
	case "":
		include = metav1.IncludeMetadata
	case metav1.IncludeNone, metav1.IncludeMetadata, metav1.IncludeObject:
	default:
		//lint:ignore ST1005 Kubernetes' words, for clients
		return Options{}, fmt.Errorf("Unable to convert to Table as requested: %w", field.Invalid(field.NewPath("includeObject"), include,
			"must be 'Metadata', 'Object', 'None', or empty"))
	}
	return Options{Include: include, Now: now}, nil
}

// Convert makes a Table of objects of one resource. The objects are only read; what the Table holds
// of them is shared with them or copied.
func Convert(res *registry.Resource, objs []runtime.Object, opts Options) *metav1.Table {
	t := &metav1.Table{
		TypeMeta: metav1.TypeMeta{APIVersion: opts.apiVersion(), Kind: "Table"},
		ListMeta: opts.ListMeta,
		Rows:     make([]metav1.TableRow, 0, len(objs)),
	}
	if !opts.NoHeaders {
		t.ColumnDefinitions = columnsOf(res)
	}
	for _, obj := range objs {
		t.Rows = append(t.Rows, metav1.TableRow{Cells: cellsOf(res, obj, opts.Now), Object: beside(res, obj, opts)})
	}
	return t
}

// Stream makes the Tables of a watch, one per event. The first carries the columns, the rest do not.
// It is not safe for concurrent use.
type Stream struct {
	res  *registry.Resource
	opts Options
}

// NewStream starts the Tables of one watch.
func NewStream(res *registry.Resource, opts Options) *Stream { return &Stream{res: res, opts: opts} }

// Next is the Table of an event about obj (bookmarks included), as of now.
func (s *Stream) Next(obj runtime.Object, now time.Time) *metav1.Table {
	opts := s.opts
	opts.Now = now
	if m, err := meta.Accessor(obj); err == nil {
		opts.ListMeta.ResourceVersion = m.GetResourceVersion()
	}
	s.opts.NoHeaders = true
	return Convert(s.res, []runtime.Object{obj}, opts)
}

// defaultColumns are those of kinds that declare none, as in Kubernetes.
var defaultColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]},
	{Name: "Age", Type: "string", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]},
}

func columnsOf(res *registry.Resource) []metav1.TableColumnDefinition {
	if res.Row == nil {
		return slices.Clone(defaultColumns)
	}
	return slices.Clone(res.Columns)
}

func cellsOf(res *registry.Resource, obj runtime.Object, now time.Time) []any {
	if res.Row != nil {
		return res.Row(obj, now)
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return make([]any, len(defaultColumns))
	}
	age := "<unknown>"
	if created := m.GetCreationTimestamp(); !created.IsZero() {
		age = duration.HumanDuration(now.Sub(created.Time))
	}
	return []any{m.GetName(), age}
}

// beside is what a row carries of its object. The bookmark that ends the initial events of a watch
// always shows its metadata, because its annotation is the message.
func beside(res *registry.Resource, obj runtime.Object, opts Options) runtime.RawExtension {
	include := opts.Include
	m, err := meta.Accessor(obj)
	if err != nil {
		return runtime.RawExtension{}
	}
	if m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" && include == metav1.IncludeNone {
		include = metav1.IncludeMetadata
	}
	switch include {
	case metav1.IncludeNone:
		return runtime.RawExtension{}
	case metav1.IncludeObject:
		return runtime.RawExtension{Object: named(res, obj)}
	}
	partial := meta.AsPartialObjectMetadata(m)
	partial.TypeMeta = metav1.TypeMeta{APIVersion: opts.apiVersion(), Kind: "PartialObjectMetadata"}
	return runtime.RawExtension{Object: partial}
}

// named is obj, or a copy, with its apiVersion and kind filled in: decoded objects lack them.
func named(res *registry.Resource, obj runtime.Object) runtime.Object {
	gvk := res.GroupVersionKind()
	if obj.GetObjectKind().GroupVersionKind() == gvk {
		return obj
	}
	obj = obj.DeepCopyObject()
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return obj
}
