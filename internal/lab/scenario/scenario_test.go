package scenario

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// head begins every scenario of these tests.
const head = "title: T\nabout: A\nneeds: {servers: 3}\nsteps:\n"

func TestMistakes(t *testing.T) {
	for _, c := range []struct{ text, says string }{
		{"title: T", "it must have a title, about and steps"},
		{"title: T\nabout: A\nsteps: [{say: a}]", "needs.servers must be at least 1"},
		{head + "- say: a\n  colour: red", `unknown field "colour"`},
		{head + "- say: a\n  run: lab leader", "step 1: it must have one of say, run, expect and wait, and has 2"},
		{head + "- quiet: true", "and has 0"},
		{head + "- say: a\n  fails: true", "say stands alone"},
		{head + "- run: rm -rf /", "a command begins with one of lab, kubectl, kontiki"},
		{head + "- run: lab", "a command begins with"},
		{head + "- run: lab write 'a", "a quote is not closed"},
		{head + "- run: lab kill ${old}", "no step before it sets ${old}"},
		{head + "- expect: lab leader\n  says: ['${new}']", "no step before it sets ${new}"},
		{head + "- expect: lab leader\n  within: soon", `within: "soon" is not a duration`},
		{head + "- run: lab leader\n  as: [a-b]", `"a-b" is not a name of letters`},
		{head + "- run: lab leader\n  find: '(a)(b)'\n  as: [a]", "find has 2 groups for 1 variables"},
		{head + "- run: lab leader\n  find: '(a'\n  as: [a]", "find: error parsing regexp"},
		{head + "- run: lab leader\n  find: '(a)'", "find needs as"},
		{head + "- run: lab leader\n  check: ['1 is 2']", "is not two numbers"},
		{head + "- wait: writer", `no step before it has started "writer"`},
		{head + "- run: lab write w\n  background: b\n  says: [a]", "it is judged where a step waits for it"},
		{head + "- expect: lab leader\n  stdin: a", "expect has no stdin"},
		{head + "- say: a\nfinally: [lab heal, date]", "finally 2: "},
	} {
		_, err := Parse([]byte(c.text))
		require.ErrorIs(t, err, ErrFormat, c.text)
		require.ErrorContains(t, err, c.says, c.text)
	}
}

// TestFilesParse: those of the lab are scenarios.
func TestFilesParse(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "docs", "labs", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		_, err = Parse(data)
		require.NoError(t, err, file)
	}
}

// script answers commands; what it is asked is written down.
type script struct {
	asked   []string
	answers map[string]func(n int) (string, error) // by command; n counts from 1
	counts  map[string]int
}

func (s *script) command(_ context.Context, words []string, stdin string) (string, error) {
	line := strings.Join(words, " ")
	s.asked = append(s.asked, line+stdin)
	if s.counts == nil {
		s.counts = map[string]int{}
	}
	s.counts[line]++
	if answer := s.answers[line]; answer != nil {
		return answer(s.counts[line])
	}
	return "", nil
}

func says(text string) func(int) (string, error) {
	return func(int) (string, error) { return text, nil }
}

func runSteps(t *testing.T, steps string, s *script) (string, error) {
	parsed, err := Parse([]byte(head + steps))
	require.NoError(t, err)
	var out bytes.Buffer
	err = parsed.Run(t.Context(), Config{Command: s.command, Out: &out})
	return out.String(), err
}

func TestStepsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{answers: map[string]func(int) (string, error){
			"lab leader": func(n int) (string, error) {
				if n < 4 {
					return "s1", nil
				}
				return "s2", nil
			},
			"lab log": says("put a-1\nput a-2\n"),
		}}
		out, err := runSteps(t, `
- run: lab leader
  as: [old]
- run: lab kill '${old}  now'
- expect: lab leader
  lacks: ["${old}"]
  as: [new]
- run: kubectl apply -f -
  stdin: "leader: ${new}"
- run: lab log
  find: "a-(\\d)"
  as: [number]
  check: ["${number} > 1"]
- say: It was ${number}.
finally: ["lab forget ${new}"]
`, s)
		require.NoError(t, err)
		require.Equal(t, []string{
			"lab leader", "lab kill s1  now", "lab leader", "lab leader", "lab leader", "kubectl apply -f -leader: s2", "lab log", "lab forget s2",
		}, s.asked)
		require.Contains(t, out, "It was 2.")
		require.Contains(t, out, "✓ after 200ms")
	})
}

// TestFailures: a step that does not do what it says ends the scenario; what is to run finally is run.
func TestFailures(t *testing.T) {
	for _, c := range []struct{ steps, says string }{
		{"- run: lab broken\n", "exit status 1: oh no"},
		{"- run: lab fine\n  fails: true\n", "it succeeded, and should not: all is well"},
		{"- run: lab fine\n  says: [ill]\n", `it does not say "ill": all is well`},
		{"- run: lab fine\n  lacks: [well]\n", `it says "well": all is well`},
		{"- run: lab fine\n  find: '(\\d+)'\n  as: [number]\n", "is not in it"},
		{"- run: lab fine\n  as: [a, b, c, d]\n", "it says 3 words for 4 variables"},
		{"- run: lab four\n  as: [number]\n  check: ['${number} < 4']\n", "4 < 4 does not hold"},
		{"- run: lab fine\n  as: [number]\n  check: ['${number} < 4']\n", "does not compare two numbers"},
		{"- expect: lab fine\n  says: [ill]\n", `it does not say "ill"`},
		{"- run: lab fine\n  background: b\n- wait: b\n  fails: true\n", "it succeeded, and should not"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{answers: map[string]func(int) (string, error){
				"lab broken": func(int) (string, error) { return "oh no", errors.New("exit status 1") },
				"lab fine":   says("all is well"),
				"lab four":   says("4"),
			}}
			_, err := runSteps(t, c.steps+"- run: lab never\nfinally: [lab last]\n", s)
			require.ErrorIs(t, err, ErrFailed, c.steps)
			require.ErrorContains(t, err, c.says, c.steps)
			require.NotContains(t, s.asked, "lab never")
			require.Equal(t, "lab last", s.asked[len(s.asked)-1])
		})
	}
}

// TestBackgroundEnds: what nobody waits for ends with the scenario; what somebody waits for must end in time.
func TestBackgroundEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := false
		command := func(ctx context.Context, words []string, _ string) (string, error) {
			if words[1] == "forever" {
				<-ctx.Done()
				ended = true
			}
			return "", nil
		}
		parsed, err := Parse([]byte(head + "- run: lab forever\n  background: b\n- wait: b\n  within: 5s\n"))
		require.NoError(t, err)
		began := time.Now()
		err = parsed.Run(t.Context(), Config{Command: command, Out: &bytes.Buffer{}})
		require.ErrorContains(t, err, "it has not ended after 5s")
		require.Equal(t, 5*time.Second, time.Since(began))
		require.True(t, ended)
	})
}

// TestHangs: a command that does not end in time is a failure, also where the step wants it to fail; and an interruption is none of time.
func TestHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context, _ []string, _ string) (string, error) {
			<-ctx.Done()
			return "", errors.New("signal: interrupt")
		}
		parsed, err := Parse([]byte(head + "- run: lab forever\n  within: 5s\n  fails: true\n"))
		require.NoError(t, err)
		err = parsed.Run(t.Context(), Config{Command: hang, Out: &bytes.Buffer{}})
		require.ErrorContains(t, err, "it took more than 5s")

		ctx, interrupt := context.WithTimeout(t.Context(), time.Second)
		defer interrupt()
		err = parsed.Run(ctx, Config{Command: hang, Out: &bytes.Buffer{}})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotContains(t, err.Error(), "it took")
	})
}
