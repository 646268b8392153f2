package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// Scenario is a file.
type Scenario struct {
	Title string `json:"title"`
	// About is what it shows, in a paragraph or two.
	About string `json:"about"`
	Needs Needs  `json:"needs"`
	Steps []Step `json:"steps"`
	// Finally are commands that run in the end, however it ends; they may fail.
	Finally []string `json:"finally"`
}

// Needs is what a lab must have.
type Needs struct {
	Servers int `json:"servers"`
	Agents  int `json:"agents"`
}

// Step has exactly one of the verbs Say, Run, Expect and Wait; what the other fields are for says the verb.
type Step struct {
	// Say is text that is printed.
	Say string `json:"say"`
	// Run is a command that is run once. Its first word is lab, kubectl or kontiki.
	Run string `json:"run"`
	// Expect is a command that is run again and again until it does what the step says, for as long as Within.
	Expect string `json:"expect"`
	// Wait is the name of a background command, which must end by itself Within.
	Wait string `json:"wait"`

	// Background is a name under which a Run goes on beside the next steps.
	Background string `json:"background"`
	// Stdin is what the command reads.
	Stdin string `json:"stdin"`
	// Fails is whether the command must fail instead of succeed.
	Fails bool `json:"fails"`
	// Says are texts that its output must contain, Lacks those that it must not contain.
	Says  []string `json:"says"`
	Lacks []string `json:"lacks"`
	// As are variables that get the words of the output or, with Find, the groups of the last match of that regular expression.
	As   []string `json:"as"`
	Find string   `json:"find"`
	// Check are comparisons of two numbers that must hold then: "${a} > ${b}", with >, < or =.
	Check []string `json:"check"`
	// Within is how long the step may take; 30s if empty.
	Within string `json:"within"`
	// Quiet prints the command, and not what it says.
	Quiet bool `json:"quiet"`

	within time.Duration
}

// defaultWithin is Within where a step says none.
const defaultWithin = 30 * time.Second

// Parse reads a scenario. A field that there is not, a step without a verb, or a variable that nothing has set is an error,
// which wraps ErrFormat and names the step.
func Parse(data []byte) (*Scenario, error) {
	s := &Scenario{}
	if err := yaml.UnmarshalStrict(data, s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if s.Title == "" || s.About == "" || len(s.Steps) == 0 {
		return nil, fmt.Errorf("%w: it must have a title, about and steps", ErrFormat)
	}
	if s.Needs.Servers < 1 || s.Needs.Agents < 0 {
		return nil, fmt.Errorf("%w: needs.servers must be at least 1, needs.agents not negative", ErrFormat)
	}
	known := names{variables: map[string]bool{}, background: map[string]bool{}}
	for i := range s.Steps {
		if err := s.Steps[i].check(known); err != nil {
			return nil, fmt.Errorf("%w: step %d: %w", ErrFormat, i+1, err)
		}
	}
	for i, line := range s.Finally {
		if err := checkCommand(line, known.variables); err != nil {
			return nil, fmt.Errorf("%w: finally %d: %w", ErrFormat, i+1, err)
		}
	}
	return s, nil
}

// names are what earlier steps have set and started.
type names struct{ variables, background map[string]bool }

// command is what the step runs; "" for say and wait.
func (s *Step) command() string { return s.Run + s.Expect }

func (s *Step) check(known names) error {
	verbs := 0
	for _, text := range []string{s.Say, s.Run, s.Expect, s.Wait} {
		if text != "" {
			verbs++
		}
	}
	if verbs != 1 {
		return fmt.Errorf("it must have one of say, run, expect and wait, and has %d", verbs)
	}
	for _, step := range []func(names) error{s.checkFields, s.checkTexts, s.checkOutput} {
		if err := step(known); err != nil {
			return err
		}
	}
	return nil
}

// checkFields looks whether fields go with the verb.
func (s *Step) checkFields(known names) error {
	judged := s.Fails || len(s.Says) > 0 || len(s.Lacks) > 0 || len(s.As) > 0 || s.Find != "" || len(s.Check) > 0 || s.Within != ""
	switch {
	case s.Say != "" && (judged || s.Stdin != "" || s.Quiet || s.Background != ""):
		return fmt.Errorf("say stands alone")
	case s.Wait != "" && (s.Stdin != "" || s.Background != ""):
		return fmt.Errorf("wait has neither stdin nor background")
	case s.Wait != "" && !known.background[s.Wait]:
		return fmt.Errorf("no step before it has started %q in the background", s.Wait)
	case s.Background != "" && (s.Expect != "" || judged):
		return fmt.Errorf("only a run can go to the background, and it is judged where a step waits for it")
	case s.Background != "" && known.background[s.Background]:
		return fmt.Errorf("there is a background command %q already", s.Background)
	case s.Expect != "" && s.Stdin != "":
		return fmt.Errorf("expect has no stdin: it runs again and again")
	}
	if s.Background != "" {
		known.background[s.Background] = true
	}
	s.within = defaultWithin
	if s.Within == "" {
		return nil
	}
	var err error
	if s.within, err = time.ParseDuration(s.Within); err != nil || s.within <= 0 {
		return fmt.Errorf("within: %q is not a duration such as 10s", s.Within)
	}
	return nil
}

// checkTexts looks whether variables are set where texts use them.
func (s *Step) checkTexts(known names) error {
	if line := s.command(); line != "" {
		if err := checkCommand(line, known.variables); err != nil {
			return err
		}
	}
	for _, text := range slices.Concat([]string{s.Say, s.Stdin}, s.Says, s.Lacks) {
		if err := checkVariables(text, known.variables); err != nil {
			return err
		}
	}
	return nil
}

// checkOutput looks at what the output becomes.
func (s *Step) checkOutput(known names) error {
	if s.Find != "" && len(s.As) == 0 {
		return fmt.Errorf("find needs as: the variables that get what was found")
	}
	if s.Find != "" {
		if err := checkVariables(s.Find, known.variables); err != nil {
			return err
		}
		find, err := s.pattern(nil)
		if err != nil {
			return fmt.Errorf("find: %w", err)
		}
		if find.NumSubexp() != len(s.As) {
			return fmt.Errorf("find has %d groups for %d variables", find.NumSubexp(), len(s.As))
		}
	}
	for _, name := range s.As {
		if !variableName.MatchString(name) {
			return fmt.Errorf("as: %q is not a name of letters", name)
		}
		known.variables[name] = true
	}
	for _, text := range s.Check {
		if err := checkVariables(text, known.variables); err != nil {
			return err
		}
		if words := strings.Fields(text); len(words) != 3 || !strings.Contains("<>=", words[1]) {
			return fmt.Errorf("check: %q is not two numbers with >, < or = between", text)
		}
	}
	return nil
}

// pattern is Find with the values of variables in it, as they are.
func (s *Step) pattern(values map[string]string) (*regexp.Regexp, error) {
	return regexp.Compile(variable.ReplaceAllStringFunc(s.Find, func(match string) string {
		return regexp.QuoteMeta(values[match[2:len(match)-1]])
	}))
}
