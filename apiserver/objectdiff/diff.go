package objectdiff

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Change is one field that differs. From is nil if it was not there, To if it is there no more.
type Change struct {
	Path string `json:"path"` // "spec.template.spec.containers[name=web].image"
	From any    `json:"from,omitempty"`
	To   any    `json:"to,omitempty"`
}

// String is a line of a diff: "~ spec.replicas: 1 → 2", "+ path: new" or "- path: old".
func (c Change) String() string {
	switch {
	case c.From == nil:
		return fmt.Sprintf("+ %s: %s", c.Path, text(c.To))
	case c.To == nil:
		return fmt.Sprintf("- %s: %s", c.Path, text(c.From))
	}
	return fmt.Sprintf("~ %s: %s → %s", c.Path, text(c.From), text(c.To))
}

func text(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(data)
}

// hidden fields change with each write, or say what the rest of a history says.
var hidden = map[string]bool{"metadata.managedFields": true, "metadata.resourceVersion": true}

// Diff returns what differs between two objects as JSON has them, in the order of the paths. nil is no object.
func Diff(from, to map[string]any) []Change {
	var d differ
	d.objects("", from, to)
	return d.changes
}

type differ struct{ changes []Change }

func (d *differ) values(path string, from, to any) {
	if hidden[path] || reflect.DeepEqual(from, to) {
		return
	}
	fromObject, ok1 := from.(map[string]any)
	toObject, ok2 := to.(map[string]any)
	if ok1 && ok2 || path == "metadata" { // also of a new object, for what is hidden in there
		d.objects(path, fromObject, toObject)
		return
	}
	fromList, ok1 := from.([]any)
	toList, ok2 := to.([]any)
	if ok1 && ok2 {
		d.lists(path, fromList, toList)
		return
	}
	d.changes = append(d.changes, Change{path, from, to})
}

func (d *differ) objects(path string, from, to map[string]any) {
	keys := slices.Collect(maps.Keys(from))
	for key := range to {
		if _, ok := from[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		d.values(join(path, key), from[key], to[key])
	}
}

// join quotes keys that would read as a path.
func join(path, key string) string {
	switch {
	case strings.ContainsAny(key, ".[]/ "):
		return fmt.Sprintf("%s[%q]", path, key)
	case path == "":
		return key
	}
	return path + "." + key
}

// lists compares elements by what names them, or, if nothing does, by their place.
func (d *differ) lists(path string, from, to []any) {
	key := naming(from, to)
	if key == "" {
		for i := range max(len(from), len(to)) {
			d.values(fmt.Sprintf("%s[%d]", path, i), at(from, i), at(to, i))
		}
		return
	}
	before, after := byKey(from, key), byKey(to, key)
	var names []string
	for _, list := range [][]any{from, to} {
		for _, element := range list {
			if name := fmt.Sprint(element.(map[string]any)[key]); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	for _, name := range names {
		d.values(fmt.Sprintf("%s[%s=%s]", path, key, name), before[name], after[name])
	}
}

func at(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}

// naming returns the field that tells the elements of both lists apart; "" if there is none.
func naming(lists ...[]any) string {
	for _, key := range []string{"name", "type", "uid", "key", "mountPath", "ip"} {
		if slices.IndexFunc(lists, func(list []any) bool { return len(byKey(list, key)) != len(list) }) < 0 {
			return key
		}
	}
	return ""
}

// byKey maps the elements by a field; those without it, or with one that is taken, are left out.
func byKey(list []any, key string) map[string]any {
	found := map[string]any{}
	for _, element := range list {
		if object, ok := element.(map[string]any); ok && object[key] != nil {
			found[fmt.Sprint(object[key])] = element
		}
	}
	return found
}
