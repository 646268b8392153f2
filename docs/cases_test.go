package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// caseID matches an id of a case of the store, of nodes or of networks in the name of a test.
var caseID = regexp.MustCompile(`_(KV|RF|ND|NW)(\d\d)`)

// caseLine matches the line of such a case in cases.md.
var caseLine = regexp.MustCompile(`^\| (KV|RF|ND|NW)-\d\d \|`)

// TestCasesAreTested: cases.md names, for each case, tests that carry its id or stand in for one, and no test with an
// id is missing there. That the named tests exist is TestNamesExist's part.
func TestCasesAreTested(t *testing.T) {
	page, err := os.ReadFile("cases.md")
	require.NoError(t, err)
	for line := range strings.Lines(string(page)) {
		if !caseLine.MatchString(line) {
			continue
		}
		id := "_" + strings.ReplaceAll(line[2:7], "-", "")
		names := place.FindAllStringSubmatch(line, -1)
		require.NotEmpty(t, names, line)
		require.Contains(t, names[0][2], strings.TrimPrefix(id, "_"), "the first test of a case carries its id")
	}
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && caseID.MatchString(f.Name.Name) {
				require.Contains(t, string(page), f.Name.Name+"`", "%s is not in cases.md", path)
			}
		}
		return nil
	}))
}
