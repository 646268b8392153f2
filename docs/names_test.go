package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// place matches `dir/file.go`, `dir/file.go:Name` and `dir/file.go:Type.Method`, in backquotes. A bare
// `file.go` names a habit, not a place.
var place = regexp.MustCompile("`([\\w.-]+/[\\w./-]+\\.go)(?::([\\w.]+))?`")

// TestNamesExist fails when a page names a file or a declaration that the code no longer has.
func TestNamesExist(t *testing.T) {
	checked := 0
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, match := range place.FindAllStringSubmatch(string(text), -1) {
			checked++
			names, err := declarations(filepath.Join("..", match[1]))
			if err != nil {
				t.Errorf("%s names %s: %v", page, match[1], err)
			} else if match[2] != "" && !names[match[2]] {
				t.Errorf("%s names %s in %s, which does not declare it", page, match[2], match[1])
			}
		}
	}
	require.NotZero(t, checked, "the pages name no code at all")
}

// declarations returns the top-level names of a Go file; methods as "Type.Method".
func declarations(path string) (map[string]bool, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			names[receiver(d)+d.Name.Name] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					names[s.Name.Name] = true
				case *ast.ValueSpec:
					for _, name := range s.Names {
						names[name.Name] = true
					}
				}
			}
		}
	}
	return names, nil
}

// receiver returns "Type." for a method and nothing for a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	expr := d.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.Ident:
			return e.Name + "."
		default:
			return ""
		}
	}
}
