// Package docbytes reads the bytes that a page of docs/formats shows, so that tests can compare them with what the code writes.
// In the code blocks of a page a line may begin with bytes in hexadecimal (after a label, as in "key    00 02"), one
// or two spaces apart; what follows after more is an explanation.
package docbytes

import (
	"os"
	"regexp"
	"strings"
)

var shown = regexp.MustCompile(`^\s*(?:[a-z]+\s+)??((?:(?:[0-9a-f]{2})+ {1,2})*(?:[0-9a-f]{2})+)(?:\s|$)`)

// In returns the bytes of each line that shows some, without spaces, one block after the other.
func In(page string) (blocks []string, err error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return nil, err
	}
	for i, part := range strings.Split(string(text), "```") {
		if i%2 == 0 {
			continue // not code
		}
		var block strings.Builder
		for line := range strings.Lines(part) {
			if m := shown.FindStringSubmatch(line); m != nil {
				block.WriteString(strings.Join(strings.Fields(m[1]), ""))
			}
		}
		blocks = append(blocks, block.String())
	}
	return blocks, nil
}
