package scenario

import (
	"fmt"
	"strings"
	"time"
)

// width is how long lines of explanations are.
const width = 96

func (r *run) printHead(s *Scenario) {
	fmt.Fprintf(r.Out, "%s\n%s\n", s.Title, strings.Repeat("=", len([]rune(s.Title))))
	r.printText(s.About)
}

// printText prints paragraphs, with lines of the same width whatever those in the file have.
func (r *run) printText(text string) {
	for _, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		fmt.Fprintln(r.Out)
		line := ""
		for _, word := range strings.Fields(paragraph) {
			if line != "" && len([]rune(line))+1+len([]rune(word)) > width {
				fmt.Fprintln(r.Out, line)
				line = ""
			}
			line = strings.TrimLeft(line+" "+word, " ")
		}
		fmt.Fprintln(r.Out, line)
	}
	fmt.Fprintln(r.Out)
}

func (r *run) printCommand(line, remark string) {
	fmt.Fprintf(r.Out, "  $ %s%s\n", strings.TrimSpace(line), remark)
}

func (r *run) printOutput(output string) {
	for line := range strings.Lines(strings.TrimRight(output, "\n")) {
		fmt.Fprintf(r.Out, "      %s\n", strings.TrimRight(line, "\n"))
	}
}

func (r *run) printSeen(after time.Duration) {
	fmt.Fprintf(r.Out, "    ✓ after %s\n", after.Round(10*time.Millisecond))
}
