package ownership

import (
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"kontiki/apiserver/registry"
)

// createdFields finds the fields that the creator of an object comes to own. The field managers of apimachinery can do
// that as well, as the difference between nothing and the object: they check the object against its schema, check
// nothing, and compare the two, which was a quarter of the server's work for a pod. When nobody else can own
// anything yet, one walk over the object is enough.
//
// A test has both do it for objects of all kinds, filled at random.
type createdFields struct {
	schema     *schema.Schema
	root       schema.TypeRef
	empty      value.Value // an object of which nothing is set: what fields have that nobody has set
	reset      fieldpath.Filter
	apiVersion string
}

// errIrregular: the object is not what its schema says, and apimachinery may say what that means.
var errIrregular = errors.New("the object does not fit its schema")

// neverOwned are the fields that nobody owns, as in apimachinery.
var neverOwned = fieldpath.NewSet(
	fieldpath.MakePathOrDie("apiVersion"),
	fieldpath.MakePathOrDie("kind"),
	fieldpath.MakePathOrDie("metadata"),
	fieldpath.MakePathOrDie("metadata", "name"),
	fieldpath.MakePathOrDie("metadata", "namespace"),
	fieldpath.MakePathOrDie("metadata", "creationTimestamp"),
	fieldpath.MakePathOrDie("metadata", "selfLink"),
	fieldpath.MakePathOrDie("metadata", "uid"),
	fieldpath.MakePathOrDie("metadata", "clusterName"),
	fieldpath.MakePathOrDie("metadata", "generation"),
	fieldpath.MakePathOrDie("metadata", "managedFields"),
	fieldpath.MakePathOrDie("metadata", "resourceVersion"),
)

func newCreatedFields(r *registry.Resource, types managedfields.TypeConverter) (*createdFields, error) {
	empty := r.New()
	empty.GetObjectKind().SetGroupVersionKind(r.GroupVersionKind())
	typed, err := types.ObjectToTyped(empty)
	if err != nil {
		return nil, err
	}
	return &createdFields{
		schema: typed.Schema(), root: typed.TypeRef(), empty: typed.AsValue(),
		reset: resetFilter(r, nil), apiVersion: r.GroupVersion().String(),
	}, nil
}

// entries are the managedFields of a new object, whose own are empty. manager may be empty. Any error means that apimachinery is to be asked.
func (c *createdFields) entries(obj runtime.Object, manager string) ([]metav1.ManagedFieldsEntry, error) {
	metadata(obj).SetManagedFields(nil) // not even an empty list of them, which is a field
	v, err := value.NewValueReflect(obj)
	if err != nil {
		return nil, err
	}
	set := fieldpath.NewSet()
	w := fieldWalk{schema: c.schema}
	root, err := w.atom(c.root, v)
	if err != nil || root.Map == nil {
		return nil, errIrregular
	}
	if err := w.changed(set, root.Map, c.empty.AsMap(), v.AsMap()); err != nil {
		return nil, err
	}
	if c.reset != nil {
		set = c.reset.Filter(set)
	}
	set = set.Difference(neverOwned)
	if set.Empty() {
		return nil, nil
	}
	if manager == "" {
		manager = "unknown"
	}
	entry := metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: c.apiVersion,
		Time: &metav1.Time{Time: time.Now().UTC()}, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{},
	}
	raw, err := set.ToJSON()
	entry.FieldsV1.SetRawBytes(raw)
	return []metav1.ManagedFieldsEntry{entry}, err
}

// fieldWalk puts the fields of a value into a set. The last element of a path is a member of its parent's set, and what
// is below it is in a child of that set.
type fieldWalk struct {
	schema *schema.Schema
}

// changed adds the fields below a map that are not as in the empty one.
func (w *fieldWalk) changed(set *fieldpath.Set, t *schema.Map, was, is value.Map) (err error) {
	is.Iterate(func(key string, item value.Value) bool {
		pe, ref := fieldpath.PathElement{FieldName: &key}, fieldType(t, key)
		if before, ok := was.Get(key); ok {
			err = w.changedField(set, pe, ref, before, item)
		} else {
			err = w.added(set, pe, ref, item)
		}
		return err == nil
	})
	return err
}

// changedField adds what differs in a field that has a value even if nobody sets it.
func (w *fieldWalk) changedField(set *fieldpath.Set, pe fieldpath.PathElement, ref schema.TypeRef, was, is value.Value) error {
	atom, err := w.atom(ref, is)
	if err != nil {
		return err
	}
	child := fieldpath.NewSet()
	switch {
	case whole(atom, is) && (was.IsNull() || was.IsMap() && was.AsMap().Empty() || atom.Scalar != nil):
		if !value.Equals(was, is) {
			set.Members.Insert(pe)
		}
		return nil
	case atom.Map != nil && was.IsMap() && atom.Map.ElementRelationship != schema.Atomic:
		err = w.changed(child, atom.Map, was.AsMap(), is.AsMap())
	case was.IsNull():
		err = w.below(child, atom, is)
	default:
		return errIrregular
	}
	attach(set, pe, child)
	return err
}

// added adds a field that is new, and all below it.
func (w *fieldWalk) added(set *fieldpath.Set, pe fieldpath.PathElement, ref schema.TypeRef, v value.Value) error {
	atom, err := w.atom(ref, v)
	if err != nil {
		return err
	}
	set.Members.Insert(pe)
	if whole(atom, v) {
		return nil
	}
	child := fieldpath.NewSet()
	err = w.below(child, atom, v)
	attach(set, pe, child)
	return err
}

// below adds what is in a map or list that is new.
func (w *fieldWalk) below(set *fieldpath.Set, atom schema.Atom, v value.Value) (err error) {
	if atom.List != nil {
		return w.items(set, atom.List, v.AsList())
	}
	v.AsMap().Iterate(func(key string, item value.Value) bool {
		err = w.added(set, fieldpath.PathElement{FieldName: &key}, fieldType(atom.Map, key), item)
		return err == nil
	})
	return err
}

// items adds the items of a list. Of several with one key only that key is owned.
func (w *fieldWalk) items(set *fieldpath.Set, t *schema.List, list value.List) error {
	if t.ElementRelationship != schema.Associative {
		return errIrregular
	}
	for i := range list.Length() {
		item := list.At(i)
		pe, err := w.itemElement(t, item)
		if err != nil {
			return err
		}
		if set.Members.Has(pe) {
			if _, ok := set.Children.Get(pe); ok {
				return errIrregular // what is below would have to go: rare enough
			}
			continue
		}
		if err := w.added(set, pe, t.ElementType, item); err != nil {
			return err
		}
	}
	return nil
}

// itemElement is an item's key in an associative list.
func (w *fieldWalk) itemElement(t *schema.List, item value.Value) (fieldpath.PathElement, error) {
	if len(t.Keys) == 0 {
		if item.IsMap() || item.IsList() || item.IsNull() {
			return fieldpath.PathElement{}, errIrregular
		}
		return fieldpath.PathElement{Value: &item}, nil
	}
	atom, ok := w.schema.Resolve(t.ElementType)
	if !ok || atom.Map == nil || !item.IsMap() {
		return fieldpath.PathElement{}, errIrregular
	}
	keys, m := value.FieldList{}, item.AsMap()
	for _, name := range t.Keys {
		if v, ok := m.Get(name); ok {
			keys = append(keys, value.Field{Name: name, Value: v})
		} else if field, ok := atom.Map.FindField(name); ok && field.Default != nil {
			keys = append(keys, value.Field{Name: name, Value: value.NewValueInterface(field.Default)})
		}
	}
	if len(keys) == 0 {
		return fieldpath.PathElement{}, errIrregular
	}
	keys.Sort()
	return fieldpath.PathElement{Key: &keys}, nil
}

// atom is the one form of a type that a value has; for null, the first.
func (w *fieldWalk) atom(ref schema.TypeRef, v value.Value) (schema.Atom, error) {
	atom, ok := w.schema.Resolve(ref)
	switch {
	case !ok:
	case v.IsNull():
		return schema.Atom{}, nil
	case v.IsMap():
		if atom.Map != nil {
			return schema.Atom{Map: atom.Map}, nil
		}
	case v.IsList():
		if atom.List != nil {
			return schema.Atom{List: atom.List}, nil
		}
	case atom.Scalar != nil:
		return schema.Atom{Scalar: atom.Scalar}, nil
	}
	return schema.Atom{}, errIrregular
}

// whole says whether a value is owned as a whole, or has nothing in it.
func whole(atom schema.Atom, v value.Value) bool {
	switch {
	case atom.Map != nil:
		return atom.Map.ElementRelationship == schema.Atomic || v.AsMap().Empty()
	case atom.List != nil:
		return atom.List.ElementRelationship == schema.Atomic || v.AsList().Length() == 0
	}
	return true
}

func fieldType(t *schema.Map, key string) schema.TypeRef {
	if field, ok := t.FindField(key); ok {
		return field.Type
	}
	return t.ElementType
}

// attach makes child, if there is anything in it, what is below pe.
func attach(set *fieldpath.Set, pe fieldpath.PathElement, child *fieldpath.Set) {
	if !child.Empty() {
		*set.Children.Descend(pe) = *child
	}
}
