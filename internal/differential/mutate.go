package differential

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// mutations are requests whose object has one value broken. They are dry runs.
func (s Subject) mutations(what, method, path string) []Step {
	var out []Step
	obj := s.Object.DeepCopy()
	if method == "PUT" {
		obj.SetResourceVersion("{rv}") // some kinds refuse an update without, whatever else is wrong with it
	}
	for _, m := range mutants(obj.Object) {
		if strings.HasPrefix(m.path, "metadata") || m.path == "kind" || m.path == "apiVersion" {
			continue // writes.go has these
		}
		out = append(out, Step{
			Name: fmt.Sprintf("%s with %s %s", what, m.path, m.change), Method: method, Path: path + "?dryRun=All", Body: m.body,
		})
	}
	return out
}

// applyMutations are dry runs of server-side apply by somebody new whose object has one value changed or missing: the
// conflict is with whoever owns that field, or with nobody.
func (s Subject) applyMutations() []Step {
	var out []Step
	for _, m := range mutants(s.Object.Object) {
		if strings.HasPrefix(m.path, "metadata") || m.path == "kind" || m.path == "apiVersion" {
			continue
		}
		switch m.change {
		case "other", "negated", "zero", "missing", "doubled", "empty", "null":
			out = append(out, Step{
				Name: fmt.Sprintf("apply with %s %s", m.path, m.change), Method: "PATCH", Path: s.one() + "?dryRun=All&fieldManager=new",
				ContentType: "application/apply-patch+yaml", Body: m.body,
			})
		}
	}
	return out
}

// A mutant is an object with one change.
type mutant struct{ path, change, body string }

// mutants changes each value of obj in each way that its type suggests.
func mutants(obj map[string]any) []mutant {
	var out []mutant
	record := func(path, change string) {
		data, err := json.Marshal(obj)
		if err != nil {
			panic(fmt.Sprintf("a manifest that came from YAML has no JSON: %v", err))
		}
		out = append(out, mutant{path, change, string(data)})
	}
	walk(obj, "", record)
	return out
}

// walk changes each value below m in place, calls record, and puts it back.
func walk(m map[string]any, prefix string, record func(path, change string)) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		path, old := strings.TrimPrefix(prefix+"."+key, "."), m[key]
		for _, c := range changes(old) {
			m[key] = c.value
			record(path, c.name)
		}
		delete(m, key)
		record(path, "missing")
		m[key] = old
		switch v := old.(type) {
		case map[string]any:
			walk(v, path, record)
		case []any:
			for i, item := range v {
				if inner, ok := item.(map[string]any); ok {
					walk(inner, fmt.Sprintf("%s[%d]", path, i), record)
				}
			}
		}
	}
}

type change struct {
	name  string
	value any
}

func changes(value any) []change {
	switch v := value.(type) {
	case string:
		return []change{{"number", 5}, {"ill-formed", "~ Bad/Value ~"}, {"empty", ""}, {"other", v + "2"}, {"long", strings.Repeat("x", 300)}}
	case bool:
		return []change{{"string", "x"}, {"negated", !v}}
	case map[string]any:
		return []change{{"list", []any{}}, {"empty", map[string]any{}}, {"null", nil}}
	case []any:
		out := []change{{"object", map[string]any{}}, {"empty", []any{}}, {"null", nil}}
		if len(v) > 0 {
			out = append(out, change{"doubled", append(slices.Clone(v), v[0])})
		}
		return out
	case nil:
		return nil
	}
	return []change{{"string", "x"}, {"negative", -1}, {"zero", 0}, {"large", 1 << 30}, {"fraction", 1.5}}
}
