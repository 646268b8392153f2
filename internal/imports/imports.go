// Package imports reads which packages of this module import which, for the test that keeps the
// directions of DESIGN.md, section 1: mvcc ← raftstore ← watch ← apiserver, and clients of the API
// apart from all of them.
package imports

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Module is the name of this module.
const Module = "kontiki"

// Graph is the imports of every package, test files left out. Keys are directories relative to the
// root of the module; values are import paths as written.
type Graph map[string][]string

// Read parses the import clauses of every Go file below root. Directories with a go.mod of their
// own, and those that the go tool ignores, are left out.
func Read(root string) (Graph, error) {
	g := Graph{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if file != root && (strings.HasPrefix(name, ".") || name == "testdata" || isModule(file)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		return g.add(root, file)
	})
	return g, err
}

func isModule(dir string) bool {
	matches, _ := filepath.Glob(filepath.Join(dir, "go.mod"))
	return len(matches) > 0
}

func (g Graph) add(root, file string) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		return fmt.Errorf("read imports: %w", err)
	}
	dir, err := filepath.Rel(root, filepath.Dir(file))
	if err != nil {
		return err
	}
	dir = filepath.ToSlash(dir)
	list := g[dir]
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		if !slices.Contains(list, imported) {
			list = append(list, imported)
		}
	}
	g[dir] = list
	return nil
}

// Path returns how the package in dir reaches an import that matches, from import to import; nil
// if it does not. Packages of other modules are leaves.
func (g Graph) Path(dir string, match func(imported string) bool) []string {
	return g.path(dir, match, map[string]bool{})
}

func (g Graph) path(dir string, match func(string) bool, seen map[string]bool) []string {
	if seen[dir] {
		return nil
	}
	seen[dir] = true
	for _, imported := range g[dir] {
		if match(imported) {
			return []string{path.Join(Module, dir), imported}
		}
		if local, ok := strings.CutPrefix(imported, Module+"/"); ok {
			if rest := g.path(local, match, seen); rest != nil {
				return append([]string{path.Join(Module, dir)}, rest...)
			}
		}
	}
	return nil
}
