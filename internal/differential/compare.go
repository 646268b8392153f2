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
	d.Path = strings.TrimPrefix(path, ".")
	d.Upstream, d.Kontiki = shorten(shown(upstream), shown(kontiki))
	c.found = append(c.found, d)
}

func shown(value any) string {
	if s, ok := value.(string); ok && s != absent {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprint(value)
}

// shorten cuts two long texts down to where they begin to differ.
func shorten(a, b string) (string, string) {
	const context, length = 60, 300
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	cut := func(text string) string {
		if len(text) <= length {
			return text
		}
		if same > length/2 {
			text = "…" + text[min(same, len(text))-context:]
		}
		if len(text) > length {
			text = text[:length] + "…"
		}
		return text
	}
	return cut(a), cut(b)
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

// lists pairs items that have names by these, others in their order.
func (c *comparison) lists(path string, upstream, kontiki []any) {
	if left, ok := byName(upstream); ok && len(upstream) > 0 {
		if right, ok := byName(kontiki); ok {
			c.maps(path, left, right)
			return
		}
	}
	for i, pair := range align(upstream, kontiki) {
		c.values(fmt.Sprintf("%s[%d]", path, i), pair[0], pair[1])
	}
}

func byName(list []any) (map[string]any, bool) {
	out := map[string]any{}
	for _, item := range list {
		name, ok := nameOf(item)
		if !ok || out[name] != nil {
			return nil, false
		}
		out[name] = item
	}
	return out, true
}

// nameOf is what tells an item of a list from the others, whatever its place.
func nameOf(item any) (string, bool) {
	m, _ := item.(map[string]any)
	if manager, ok := m["manager"].(string); ok && m["operation"] != nil {
		return fmt.Sprint(manager, " ", m["operation"], " ", m["apiVersion"], " ", m["subresource"]), true
	}
	if name, ok := m["name"].(string); ok {
		return name, true
	}
	meta, _ := m["metadata"].(map[string]any)
	name, ok := meta["name"].(string)
	return name, ok
}
