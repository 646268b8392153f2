package openapi

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kontiki/apiserver/registry"
)

// TestEnumsAreThoseOfTheSources: enums.go has each enum that a served type refers to, with the constants that k8s.io/api
// declares. When it fails for a new release of k8s.io/api, what it prints goes into enums.go.
func TestEnumsAreThoseOfTheSources(t *testing.T) {
	wanted, packages := map[string]string{}, map[string]map[string]string{}
	for typ := range namedStrings(registry.Builtin(registry.Options{})) {
		path := typ.PkgPath()
		if slices.ContainsFunc(generators, func(g generator) bool { return strings.HasPrefix(path, g.packages) }) {
			continue // generated.go
		}
		if packages[path] == nil {
			packages[path] = enumsOfPackage(t, path)
		}
		if values, ok := packages[path][typ.Name()]; ok {
			wanted[enumName(typ)] = values
		}
	}
	require.NotEmpty(t, wanted)
	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		fmt.Fprintf(&lines, "\t%q: %q,\n", name, wanted[name])
	}
	require.Equal(t, wanted, map[string]string(enums), "enums.go should have:\n%s", &lines)
}

// namedStrings are the string types with names that the types of the rows are made of.
func namedStrings(table *registry.Table) map[reflect.Type]bool {
	out, seen := map[reflect.Type]bool{}, map[reflect.Type]bool{}
	var visit func(reflect.Type)
	visit = func(typ reflect.Type) {
		if seen[typ] {
			return
		}
		seen[typ] = true
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice:
			visit(typ.Elem())
		case reflect.Map:
			visit(typ.Key())
			visit(typ.Elem())
		case reflect.Struct:
			for i := range typ.NumField() {
				visit(typ.Field(i).Type)
			}
		case reflect.String:
			out[typ] = typ.PkgPath() != ""
		}
	}
	for _, r := range typedRows(table) {
		visit(reflect.TypeOf(r.New()))
		for _, sub := range r.Subresources {
			if sub.New != nil {
				visit(reflect.TypeOf(sub.New()))
			}
		}
	}
	maps.DeleteFunc(out, func(_ reflect.Type, named bool) bool { return !named })
	return out
}

// enumsOfPackage are the string types of a package whose comments say +enum, with the values of their constants: sorted,
// with enumSeparator between. Constants may be expressions over other packages', so that their values come from what
// the compiler exported.
func enumsOfPackage(t *testing.T, path string) map[string]string {
	found, err := exec.CommandContext(t.Context(), "go", "list", "-export", "-f", "{{.Dir}}\n{{.Export}}", path).Output()
	require.NoError(t, err)
	dir, export, _ := strings.Cut(strings.TrimSpace(string(found)), "\n")
	compiled := importer.ForCompiler(token.NewFileSet(), "gc", func(string) (io.ReadCloser, error) { return os.Open(export) })
	pkg, err := compiled.Import(path)
	require.NoError(t, err)
	out := map[string]string{}
	for _, name := range markedTypes(t, dir) {
		out[name] = strings.Join(constantsOf(pkg, name), enumSeparator)
	}
	return out
}

func constantsOf(pkg *types.Package, typeName string) (out []string) {
	for _, name := range pkg.Scope().Names() {
		value, ok := pkg.Scope().Lookup(name).(*types.Const)
		if ok && types.Identical(value.Type(), pkg.Scope().Lookup(typeName).Type()) {
			out = append(out, constant.StringVal(value.Val()))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

var enumComment = regexp.MustCompile(`(?m)^\s*\+enum\s*$`)

// markedTypes are the types in the sources of a package whose comments say +enum.
func markedTypes(t *testing.T, dir string) (out []string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.TYPE {
				continue
			}
			for _, s := range gen.Specs {
				if named := s.(*ast.TypeSpec); enumComment.MatchString(gen.Doc.Text() + named.Doc.Text()) {
					out = append(out, named.Name.Name)
				}
			}
		}
	}
	return out
}
