package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	comment   = regexp.MustCompile(`(?m)(?:^|\s)//(.*)$`)
	goFile    = regexp.MustCompile(`[\w/-]+\.go\b`)
	elsewhere = map[string]bool{"replication.go": true, "file.go": true} // a file of raft's, and none
)

// TestCommentsNameFiles fails when a comment names a Go file that is not beside it, nor in a folder above: package comments
// say which file to read first. One in a folder that is nowhere here is another project's.
func TestCommentsNameFiles(t *testing.T) {
	named := 0
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && len(d.Name()) > 2 && d.Name()[0] == '.' { // .git, .kontiki
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasPrefix(d.Name(), "zz_generated") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, line := range comment.FindAllStringSubmatch(string(text), -1) {
			for _, name := range goFile.FindAllString(line[1], -1) {
				named++
				foreign := elsewhere[name] || strings.HasPrefix(name, "_") || !above(filepath.Dir(path), filepath.Dir(name))
				if !foreign && !above(filepath.Dir(path), name) {
					t.Errorf("%s names %s, which is not there: %s", path, name, strings.TrimSpace(line[1]))
				}
			}
		}
		return nil
	}))
	require.NotZero(t, named, "comments name no file at all")
}

// above says whether a file is in a folder or in one above it, up to the root of the module.
func above(dir, name string) bool {
	for ; ; dir = filepath.Join(dir, "..") {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
		if dir == ".." {
			return false
		}
	}
}
