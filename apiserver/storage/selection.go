package storage

import (
	"k8s.io/apimachinery/pkg/fields"

	"kontiki/watch"
)

// CheckFields returns a *FieldError for the first field of selector that the row does not offer. An
// unknown field must be refused: it would otherwise select nothing, or everything.
func (s *Store) CheckFields(selector fields.Selector) error {
	if selector == nil || selector.Empty() {
		return nil
	}
	known := s.codec.Fields(s.row.New())
	for _, requirement := range selector.Requirements() {
		if requirement.Field == "metadata.namespace" {
			continue // of no use on resources without namespaces, but allowed
		}
		if _, ok := known[requirement.Field]; !ok {
			return &FieldError{Field: requirement.Field, Plain: s.row.Fields == nil}
		}
	}
	return nil
}

// filter makes a watch.Filter of a selection.
func (s *Store) filter(sel Selection) (watch.Filter, error) {
	if err := s.CheckFields(sel.Fields); err != nil {
		return watch.Filter{}, err
	}
	start, end, err := s.keyRange(sel)
	return watch.Filter{Start: start, End: end, Match: sel.match()}, err
}

// match is nil if labels and fields select everything.
func (sel Selection) match() func(*watch.Object) (bool, error) {
	if (sel.Labels == nil || sel.Labels.Empty()) && (sel.Fields == nil || sel.Fields.Empty()) && sel.Name == "" {
		return nil
	}
	return func(o *watch.Object) (bool, error) {
		labels, fields, err := o.Attributes()
		if err != nil {
			return false, err
		}
		return (sel.Name == "" || fields["metadata.name"] == sel.Name) &&
			(sel.Labels == nil || sel.Labels.Matches(labels)) &&
			(sel.Fields == nil || sel.Fields.Matches(fields)), nil
	}
}
