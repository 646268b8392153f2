package differential

import (
	"fmt"
	"maps"
	"mime"
	"slices"
	"strings"
)

// A Difference is one place where the answers to one step differ.
type Difference struct {
	Scenario, Step, Path string
	Upstream, Kontiki    string // "absent" if there is nothing
}

const absent = "absent"

// comparedHeaders are compared by value; presentHeaders only by being there.
var (
	comparedHeaders = []string{"Warning", "Cache-Control", "Retry-After", "Allow", "Vary", "Content-Encoding"}
	presentHeaders  = []string{"Audit-Id", "Etag", "Last-Modified"}
)

// compare lists what differs between two answers to one step.
func compare(scenario Scenario, step Step, upstream, kontiki answer) []Difference {
	c := comparison{base: Difference{Scenario: scenario.Name, Step: step.Name}}
	if upstream.code != kontiki.code {
		// What else differs follows from this.
		c.add("code", outcome(upstream), outcome(kontiki))
		return c.found
	}
	media := func(a answer) string {
		m, params, err := mime.ParseMediaType(a.header.Get("Content-Type"))
		if err != nil {
			return a.header.Get("Content-Type")
		}
		return mime.FormatMediaType(m, params)
	}
	c.values("Content-Type", media(upstream), media(kontiki))
	for _, name := range comparedHeaders {
		c.values(name, strings.Join(upstream.header.Values(name), "; "), strings.Join(kontiki.header.Values(name), "; "))
	}
	for _, name := range presentHeaders {
		c.values(name, upstream.header.Get(name) != "", kontiki.header.Get(name) != "")
	}
	c.values("", normalise("", upstream.body), normalise("", kontiki.body))
	return c.found
}

// outcome is the code, and the message of a failure.
func outcome(a answer) string {
	status, _ := normalise("", a.body).(map[string]any)
	if message, ok := status["message"]; ok && a.code >= 300 {
		return fmt.Sprint(a.code, " ", message)
	}
	return fmt.Sprint(a.code)
}

type comparison struct {
	base  Difference
	found []Difference
}

func (c *comparison) add(path string, upstream, kontiki any) {
	d := c.base
	d.Path, d.Upstream, d.Kontiki = strings.TrimPrefix(path, "."), shorten(upstream), shorten(kontiki)
	c.found = append(c.found, d)
}

func shorten(value any) string {
	out := fmt.Sprint(value)
	if s, ok := value.(string); ok && s != absent {
		out = fmt.Sprintf("%q", s)
	}
	if len(out) > 300 {
		out = out[:300] + "…"
	}
	return out
}

// values compares two decoded values.
func (c *comparison) values(path string, upstream, kontiki any) {
	left, leftMap := upstream.(map[string]any)
	right, rightMap := kontiki.(map[string]any)
	if leftMap && rightMap {
		c.maps(path, left, right)
		return
	}
	leftList, isLeft := upstream.([]any)
	rightList, isRight := kontiki.([]any)
	if isLeft && isRight {
		c.lists(path, leftList, rightList)
		return
	}
	if text(upstream) != text(kontiki) {
		c.add(path, upstream, kontiki)
	}
}

func (c *comparison) maps(path string, upstream, kontiki map[string]any) {
	keys := map[string]bool{}
	for key := range upstream {
		keys[key] = true
	}
	for key := range kontiki {
		keys[key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		left, ok := upstream[key]
		if !ok {
			left = absent
		}
		right, ok := kontiki[key]
		if !ok {
			right = absent
		}
		c.values(path+"."+key, left, right)
	}
}

// lists pairs items that have names by these, others by their place.
func (c *comparison) lists(path string, upstream, kontiki []any) {
	if left, ok := byName(upstream); ok && len(upstream) > 0 {
		if right, ok := byName(kontiki); ok {
			c.maps(path, left, right)
			return
		}
	}
	for i := range max(len(upstream), len(kontiki)) {
		left, right := any(absent), any(absent)
		if i < len(upstream) {
			left = upstream[i]
		}
		if i < len(kontiki) {
			right = kontiki[i]
		}
		c.values(fmt.Sprintf("%s[%d]", path, i), left, right)
	}
}

func byName(list []any) (map[string]any, bool) {
	out := map[string]any{}
	for _, item := range list {
		m, _ := item.(map[string]any)
		name, ok := m["name"].(string)
		if !ok {
			if meta, isMap := m["metadata"].(map[string]any); isMap {
				name, ok = meta["name"].(string)
			}
		}
		if !ok || out[name] != nil {
			return nil, false
		}
		out[name] = item
	}
	return out, true
}
