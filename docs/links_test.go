package docs

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	codeBlock = regexp.MustCompile("(?s)\n```.*?\n```")
	heading   = regexp.MustCompile(`(?m)^#+ (.+)$`)
	link      = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	notAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestLinks fails when a page links to a file or a heading that is not there, or when no page links to it: whoever begins at
// README.md finds all of them.
func TestLinks(t *testing.T) {
	texts := map[string]string{}
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		texts[page] = codeBlock.ReplaceAllString(string(text), "")
	}
	linked := map[string]bool{"../README.md": true, "../CONTRIBUTING.md": true}
	for page, text := range texts {
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			target, anchor, _ := strings.Cut(match[1], "#")
			file := path.Join(path.Dir(page), target)
			if target == "" {
				file = page
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s links to %s: %v", page, match[1], err)
			}
			if anchor != "" && !anchors(texts[file])[anchor] {
				t.Errorf("%s links to %s, which has no such heading", page, match[1])
			}
			linked[file] = linked[file] || file != page
		}
	}
	for page := range texts {
		require.True(t, linked[page], "no page links to %s", page)
	}
}

// pages are README.md, CONTRIBUTING.md and all below docs, as seen from here.
func pages(t *testing.T) []string {
	found := []string{"../README.md", "../CONTRIBUTING.md"}
	require.NoError(t, filepath.WalkDir(".", func(path string, _ os.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			found = append(found, path)
		}
		return err
	}))
	return found
}

// anchors are the fragments by which the headings of a page are linked to, as GitHub makes them.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(text, -1) {
		found[strings.ReplaceAll(notAnchor.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-")] = true
	}
	return found
}
