package customresources

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/util/jsonpath"
)

// ageColumn is what a definition without columns of its own has.
var ageColumn = []apiextensionsv1.CustomResourceColumnDefinition{{
	Name: "Age", Type: "date", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"], JSONPath: ".metadata.creationTimestamp",
}}

// printer makes a row's Columns and Row out of a definition's columns.
func printer(wanted []apiextensionsv1.CustomResourceColumnDefinition) ([]metav1.TableColumnDefinition, func(runtime.Object, time.Time) []any) {
	if len(wanted) == 0 {
		wanted = ageColumn
	}
	columns := []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]}}
	p := &cellPrinter{}
	for _, c := range wanted {
		description := c.Description
		if description == "" {
			description = "Custom resource definition column (in JSONPath format): " + c.JSONPath
		}
		columns = append(columns, metav1.TableColumnDefinition{Name: c.Name, Type: c.Type, Format: c.Format, Description: description, Priority: c.Priority})
		p.kinds, p.paths = append(p.kinds, c.Type), append(p.paths, parsePath(c.Name, c.JSONPath))
	}
	return columns, p.cells
}

// parsePath returns nil for a path that is none; validation has refused it.
func parsePath(name, path string) *jsonpath.JSONPath {
	parsed := jsonpath.New(name).AllowMissingKeys(true)
	if parsed.Parse("{"+path+"}") != nil {
		return nil
	}
	return parsed
}

// cellPrinter finds what the columns show.
type cellPrinter struct {
	kinds []string
	mu    sync.Mutex // guards paths: looking one up notes in it where it is
	paths []*jsonpath.JSONPath
}

func (p *cellPrinter) cells(obj runtime.Object, now time.Time) []any {
	u := obj.(*unstructured.Unstructured)
	cells := []any{u.GetName()}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, path := range p.paths {
		cells = append(cells, cell(path, p.kinds[i], u.Object, now))
	}
	return cells
}

// cell is nil for what the object does not have.
func cell(path *jsonpath.JSONPath, kind string, u map[string]any, now time.Time) any {
	value := find(path, u)
	if value == nil || kind != "string" {
		return typedCell(kind, value, now)
	}
	var text bytes.Buffer
	if path.PrintResults(&text, []reflect.Value{reflect.ValueOf(value)}) != nil {
		return nil
	}
	return text.String()
}

// find returns the first value that a path leads to, or nil.
func find(path *jsonpath.JSONPath, u map[string]any) any {
	if path == nil {
		return nil
	}
	results, err := path.FindResults(u)
	if err != nil || len(results) == 0 || len(results[0]) == 0 {
		return nil
	}
	return results[0][0].Interface()
}

func typedCell(kind string, value any, now time.Time) any {
	switch kind {
	case "integer":
		switch n := value.(type) {
		case int64:
			return n
		case float64:
			return int64(n)
		}
	case "number":
		switch n := value.(type) {
		case int64:
			return float64(n)
		case float64:
			return n
		}
	case "boolean":
		if b, ok := value.(bool); ok {
			return b
		}
	case "date":
		if text, ok := value.(string); ok {
			return since(text, now)
		}
	}
	return nil
}

// since is how long ago a moment was, as kubectl shows it.
func since(text string, now time.Time) string {
	var at metav1.Time
	if quoted, err := json.Marshal(text); err != nil || at.UnmarshalJSON(quoted) != nil {
		return "<invalid>"
	}
	if at.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(at.Time))
}

// selectable makes a row's Fields out of a definition's selectable fields.
func selectable(wanted []apiextensionsv1.SelectableField) func(runtime.Object) fields.Set {
	var mu sync.Mutex // guards paths, as in cellPrinter
	paths := map[string]*jsonpath.JSONPath{}
	for _, f := range wanted {
		paths[strings.TrimPrefix(f.JSONPath, ".")] = parsePath(f.JSONPath, f.JSONPath)
	}
	return func(obj runtime.Object) fields.Set {
		mu.Lock()
		defer mu.Unlock()
		set := fields.Set{}
		for name, path := range paths {
			set[name] = ""
			if value := find(path, obj.(*unstructured.Unstructured).Object); value != nil {
				set[name] = fmt.Sprint(value)
			}
		}
		return set
	}
}
