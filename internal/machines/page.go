package machines

import (
	"regexp"
	"strings"
)

// Step is a command in a page, and the machine that it is for: `n1# kontiki store members`.
type Step struct {
	Machine, Command string
}

// Section is a part of a page: the commands in its code blocks, in their order, and those of each row of its tables, by the
// row's first cell.
type Section struct {
	Heading string
	Steps   []Step
	Rows    map[string][]Step
}

var (
	prompted = regexp.MustCompile(`^(n\d)# (.*?)( {2,}# .*)?$`)
	inline   = regexp.MustCompile("`(n\\d# [^`]+)`")
)

// Page is what a page of docs/ has a person do, section by section; what stands before the first heading has none. Other lines, and commands without such a prompt, are for
// readers alone.
func Page(text string) (sections []Section) {
	current, inBlock := &Section{Rows: map[string][]Step{}}, false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		heading, isHeading := strings.CutPrefix(line, "## ")
		cells := strings.Split(strings.Trim(line, "|"), "|")
		switch {
		case strings.HasPrefix(line, "```"):
			inBlock = !inBlock
		case inBlock:
			if step, ok := parseStep(line); ok {
				current.Steps = append(current.Steps, step)
			}
		case isHeading:
			sections = append(sections, *current)
			current = &Section{Heading: heading, Rows: map[string][]Step{}}
		case strings.HasPrefix(line, "|") && len(cells) > 1:
			for _, found := range inline.FindAllStringSubmatch(cells[1], -1) {
				if step, ok := parseStep(found[1]); ok {
					what := strings.TrimSpace(cells[0])
					current.Rows[what] = append(current.Rows[what], step)
				}
			}
		}
	}
	return append(sections, *current)
}

func parseStep(line string) (Step, bool) {
	found := prompted.FindStringSubmatch(line)
	if found == nil {
		return Step{}, false
	}
	return Step{Machine: found[1], Command: found[2]}, true
}
