package differential

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// What differs from server to server by nature, wherever it stands in a text.
var variables = []struct {
	pattern *regexp.Regexp
	name    string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "<uid>"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "<time>"},
	{regexp.MustCompile(`10\.96\.\d+\.\d+`), "<ip>"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "<server>"},
	{regexp.MustCompile(`current: \d+`), "current: <rv>"},
	{regexp.MustCompile(`in record \(\d+\)`), "in record (<rv>)"},
	{regexp.MustCompile(`in object meta: \d+$`), "in object meta: <rv>"},
	{regexp.MustCompile(`(:|Duplicate value: )3[012]\d\d\d\b`), "$1<node port>"},
	{regexp.MustCompile(`^(\d{1,3}s|[2-9]m(\d{1,2}s)?|[1-9]\dm)$`), "<age>"}, // of a row
	{regexp.MustCompile(`0x[0-9a-f]{6,}`), "<pointer>"},
	{regexp.MustCompile(`Bad_[a-z0-9]{5}`), "Bad_<random>"}, // a generateName of the corpus
	// What a refused patch had made of the object: each of its fields is compared where the object is answered.
	{regexp.MustCompile(`patch: Invalid value: "\{\\".*\}": `), `patch: Invalid value: "<object>": `},
	{regexp.MustCompile(`^Invalid value: "\{\\".*\}": `), `Invalid value: "<object>": `},
}

// normalise replaces the variables in a body. Lists without an order of their own are sorted.
func normalise(key string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, inner := range v {
			out[name] = normalise(name, inner)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = normalise("", inner)
		}
		if key == "causes" || key == "managedFields" {
			slices.SortStableFunc(out, func(a, b any) int { return strings.Compare(text(a), text(b)) })
		}
		return out
	case string:
		switch {
		case v == "":
		case key == "resourceVersion" || key == "continue" || key == "hash" || key == "token" && strings.HasPrefix(v, "ey"):
			return "<" + key + ">"
		}
		for _, variable := range variables {
			v = variable.pattern.ReplaceAllString(v, variable.name)
		}
		return v
	case float64:
		if key == "nodePort" || key == "healthCheckNodePort" {
			return "<port>"
		}
	}
	return value
}

// text is a value in one line, the same for equal values.
func text(value any) string {
	switch v := value.(type) {
	case map[string]any:
		var parts []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, key+":"+text(v[key]))
		}
		return "{" + strings.Join(parts, " ") + "}"
	case string:
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprint(value)
}
