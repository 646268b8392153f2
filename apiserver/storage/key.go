package storage

import (
	"fmt"
	"strings"

	"kontiki/watch"
)

// key is where an object lives: PREFIX/NAMESPACE/NAME, or PREFIX/NAME without namespaces.
func (s *Store) key(namespace, name string) (string, error) {
	prefix, err := s.prefix(namespace)
	if err != nil {
		return "", err
	}
	if s.row.Namespaced && namespace == "" {
		return "", fmt.Errorf("%s %q without a namespace: %w", s.row.Resource, name, ErrInvalidName)
	}
	if !isSegment(name) {
		return "", fmt.Errorf("%s name %q: %w", s.row.Resource, name, ErrInvalidName)
	}
	return prefix + name, nil
}

// prefix is what the keys of a namespace begin with; of all namespaces if it is "".
func (s *Store) prefix(namespace string) (string, error) {
	if !s.row.Namespaced || namespace == "" {
		return s.cache.Prefix(), nil
	}
	if !isSegment(namespace) {
		return "", fmt.Errorf("namespace %q: %w", namespace, ErrInvalidName)
	}
	return s.cache.Prefix() + namespace + "/", nil
}

// isSegment says whether a name can be one segment of a key. (What names Kubernetes allows for a
// kind is for validation to say; this only keeps objects where they belong.)
func isSegment(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00")
}

// keyRange is the range of keys that holds everything that sel selects. Names and namespaces that
// the field selector demands narrow it, so that such lists and watches look at nothing else.
func (s *Store) keyRange(sel Selection) (start, end string, err error) {
	namespace, name := sel.Namespace, sel.Name
	if sel.Fields != nil {
		if exact, ok := sel.Fields.RequiresExactMatch("metadata.name"); ok && name == "" {
			name = exact
		}
		if exact, ok := sel.Fields.RequiresExactMatch("metadata.namespace"); ok && namespace == "" {
			namespace = exact
		}
	}
	start, err = s.prefix(namespace)
	if err != nil {
		return "", "", err
	}
	if isSegment(name) && (namespace != "" || !s.row.Namespaced) {
		return start + name, start + name + "\x00", nil
	}
	return start, watch.PrefixEnd(start), nil
}
