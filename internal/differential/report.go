package differential

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Finding is a difference that one or more resources show alike.
type Finding struct {
	ID        string // of step, path and values: the same in every run
	Resources []string
	Example   Difference
}

func (f Finding) String() string {
	shown := f.Resources
	more := ""
	if len(shown) > 4 {
		shown, more = shown[:4], fmt.Sprintf(" and %d more", len(f.Resources)-4)
	}
	return fmt.Sprintf("%s  %s: %s\n    at       %s\n    upstream %s\n    kontiki  %s",
		f.ID, strings.Join(shown, ", ")+more, f.Example.Step, f.Example.Path, f.Example.Upstream, f.Example.Kontiki)
}

// Group puts differences together that are the same but for the resource, those that most resources show first.
func Group(differences []Difference, kinds map[string]string) []Finding {
	byID := map[string]*Finding{}
	for _, d := range differences {
		plain := strings.Join([]string{d.Step, d.Path, d.Upstream, d.Kontiki}, "\x00")
		plain = strings.ReplaceAll(plain, d.Scenario, "<resource>")
		if kind := kinds[d.Scenario]; kind != "" {
			plain = strings.ReplaceAll(plain, kind, "<kind>")
		}
		sum := sha256.Sum256([]byte(plain))
		id := hex.EncodeToString(sum[:4])
		f := byID[id]
		if f == nil {
			f = &Finding{ID: id, Example: d}
			byID[id] = f
		}
		if !slices.Contains(f.Resources, d.Scenario) {
			f.Resources = append(f.Resources, d.Scenario)
		}
	}
	var out []Finding
	for _, f := range byID {
		slices.Sort(f.Resources)
		out = append(out, *f)
	}
	slices.SortFunc(out, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(len(b.Resources), len(a.Resources)), cmp.Compare(a.Example.Step, b.Example.Step), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// A Known is a kind of difference that stays, and why.
type Known struct {
	pattern *regexp.Regexp // of "scenario | step | path | upstream | kontiki"
	Reason  string
}

// ParseKnown reads testdata/known.tsv: a pattern, a tab and a reason on each line; # begins a comment.
func ParseKnown(data []byte) ([]Known, error) {
	var out []Known
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		line := lines.Text()
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pattern, reason, ok := strings.Cut(line, "\t")
		if !ok {
			return nil, fmt.Errorf("known difference without a reason: %s", line)
		}
		re, err := regexp.Compile("(?s)^(?:" + pattern + ")$") // values have lines
		if err != nil {
			return nil, err
		}
		out = append(out, Known{re, reason})
	}
	return out, lines.Err()
}

// Explain returns why a difference stays: the first line of the list that fits, or nil.
func Explain(known []Known, d Difference) *Known {
	line := strings.Join([]string{d.Scenario, d.Step, d.Path, d.Upstream, d.Kontiki}, " | ")
	for i, k := range known {
		if k.pattern.MatchString(line) {
			return &known[i]
		}
	}
	return nil
}
