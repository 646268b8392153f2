package openapidiff

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Definitions are the schemas of a document by name, as JSON decodes them.
type Definitions map[string]any

// Parse takes the definitions out of a document, OpenAPI v2 or v3.
func Parse(document []byte) (Definitions, error) {
	var found struct {
		Definitions Definitions
		Components  struct{ Schemas Definitions }
	}
	if err := json.Unmarshal(document, &found); err != nil {
		return nil, err
	}
	if found.Definitions != nil {
		return found.Definitions, nil
	}
	return found.Components.Schemas, nil
}

// Kinds calls accept with each kind in the definitions' x-kubernetes-group-version-kind and returns the definitions with
// those that it accepts, and all that they refer to.
func (d Definitions) Kinds(accept func(group, version, kind string) bool) Definitions {
	out, names := Definitions{}, []string(nil)
	for name, def := range d {
		kept, found := withKinds(def, accept)
		if found {
			names = append(names, name)
		}
		out[name] = kept
	}
	return out.reachable(names)
}

// ListedKinds are the kinds of all definitions, as group/version/kind.
func (d Definitions) ListedKinds() map[string]bool {
	out := map[string]bool{}
	d.Kinds(func(group, version, kind string) bool {
		out[group+"/"+version+"/"+kind] = true
		return true
	})
	return out
}

const kindsKey = "x-kubernetes-group-version-kind"

func withKinds(def any, accept func(group, version, kind string) bool) (any, bool) {
	fields, _ := def.(map[string]any)
	list, _ := fields[kindsKey].([]any)
	list = slices.DeleteFunc(slices.Clone(list), func(k any) bool {
		kind, _ := k.(map[string]any)
		return !accept(fmt.Sprint(kind["group"]), fmt.Sprint(kind["version"]), fmt.Sprint(kind["kind"]))
	})
	if len(list) == 0 {
		return def, false
	}
	fields = maps.Clone(fields)
	fields[kindsKey] = list
	return fields, true
}

func (d Definitions) reachable(names []string) Definitions {
	out := Definitions{}
	for len(names) > 0 {
		name := names[0]
		names = names[1:]
		if def, ok := d[name]; ok && out[name] == nil {
			out[name] = def
			names = append(names, references(def)...)
		}
	}
	return out
}

func references(value any) (names []string) {
	switch value := value.(type) {
	case map[string]any:
		for key, v := range value {
			if ref, ok := v.(string); ok && key == "$ref" {
				names = append(names, ref[strings.LastIndex(ref, "/")+1:])
			}
			names = append(names, references(v)...)
		}
	case []any:
		for _, v := range value {
			names = append(names, references(v)...)
		}
	}
	return names
}

// Compare lists what differs in the definitions, as "path: found, want wanted", sorted.
func Compare(found, wanted Definitions) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(union(found, wanted))) {
		out = append(out, compare(name, found[name], wanted[name])...)
	}
	return out
}

func compare(path string, found, wanted any) (out []string) {
	a, okA := found.(map[string]any)
	b, okB := wanted.(map[string]any)
	if !okA || !okB {
		if reflect.DeepEqual(sorted(path, found), sorted(path, wanted)) {
			return nil
		}
		return []string{fmt.Sprintf("%s: %s, want %s", path, show(found), show(wanted))}
	}
	for _, key := range slices.Sorted(maps.Keys(union(a, b))) {
		if text, ok := b[key].(string); ok && key == "description" {
			if mine, _ := a[key].(string); text != "" && mine == "" {
				out = append(out, path+": no description")
			}
			continue
		}
		if _, isText := a[key].(string); isText && key == "description" {
			continue // more than what is wanted
		}
		out = append(out, compare(path+"."+key, a[key], b[key])...)
	}
	return out
}

// sorted puts lists in order whose order says nothing.
func sorted(path string, value any) any {
	list, ok := value.([]any)
	if !ok || strings.HasSuffix(path, "x-kubernetes-list-map-keys") {
		return value
	}
	list = slices.Clone(list)
	slices.SortFunc(list, func(x, y any) int { return strings.Compare(show(x), show(y)) })
	return list
}

func show(value any) string {
	if object, ok := value.(map[string]any); ok && len(object) > 4 {
		return "an object"
	}
	text, _ := json.Marshal(value)
	return string(text)
}

func union(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]any{}
	}
	maps.Copy(out, b)
	return out
}
