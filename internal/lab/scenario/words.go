package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	variable     = regexp.MustCompile(`\$\{([^}]*)\}`)
	variableName = regexp.MustCompile(`^[a-zA-Z]+$`)
)

// programs are the first words that a command may have.
var programs = []string{"lab", "kubectl", "kontiki"}

func checkCommand(line string, known map[string]bool) error {
	if err := checkVariables(line, known); err != nil {
		return err
	}
	words, err := split(line)
	if err != nil {
		return err
	}
	if len(words) < 2 || !slices.Contains(programs, words[0]) {
		return fmt.Errorf("%q: a command begins with one of %s", line, strings.Join(programs, ", "))
	}
	return nil
}

func checkVariables(text string, known map[string]bool) error {
	for _, match := range variable.FindAllStringSubmatch(text, -1) {
		if !known[match[1]] {
			return fmt.Errorf("no step before it sets ${%s}", match[1])
		}
	}
	return nil
}

// expand puts the values of variables in.
func expand(text string, values map[string]string) string {
	return variable.ReplaceAllStringFunc(text, func(match string) string { return values[match[2:len(match)-1]] })
}

// split parts a command into words at blanks, as a shell does; what is between ' and ', or between " and ", belongs to one word.
// There is nothing else of a shell in it.
func split(line string) (words []string, err error) {
	var word strings.Builder
	inside, quote := false, rune(0)
	end := func() {
		if inside {
			words = append(words, word.String())
		}
		word.Reset()
		inside = false
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, inside = r, true
		case quote == 0 && (r == ' ' || r == '\n' || r == '\t'):
			end()
		default:
			word.WriteRune(r)
			inside = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("%q: a quote is not closed", line)
	}
	end()
	return words, nil
}
