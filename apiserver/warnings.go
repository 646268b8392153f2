package apiserver

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"unicode/utf8"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/warning"
)

// Limits of the Warning headers of one response, as in Kubernetes: if all together are longer than the total, each text
// is cut, and what is past the total is left out.
const (
	maxWarningsRunes   = 4 * 1024
	maxWarningRunes    = 256
	maxWarningsPerBody = 100
)

// warnings collects the texts for a response's Warning headers (RFC 7234 section 5.5, code 299).
type warnings struct {
	mu    sync.Mutex // guards all below; writes retried in another goroutine may warn
	texts []string
	seen  map[string]bool
}

// withWarnings lets the stages after it warn the client, up to the moment the headers go out.
func (s *Server) withWarnings(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		list := &warnings{seen: map[string]bool{}}
		factsOf(r.Context()).warnings = list
		next.ServeHTTP(w, r.WithContext(warning.WithWarningRecorder(r.Context(), list)))
	})
}

// AddWarning implements warning.Recorder, for libraries of Kubernetes that warn by themselves (rules of custom resources
// that are broken by what has not changed).
func (l *warnings) AddWarning(_, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(text)
}

// warn adds texts to the Warning headers of the response; the same text is sent once.
func warn(ctx context.Context, texts ...string) {
	list := factsOf(ctx).warnings
	if list == nil {
		return
	}
	list.mu.Lock()
	defer list.mu.Unlock()
	for _, text := range texts {
		list.add(text)
	}
}

// warnFaults warns of unknown and duplicate fields. The YAML decoder puts all its faults into one
// error, a line each.
func warnFaults(ctx context.Context, faults []error) {
	for _, fault := range faults {
		text := fault.Error()
		if yamlText, ok := strings.CutPrefix(text, "yaml: "); ok {
			for line := range strings.SplitSeq(strings.TrimPrefix(yamlText, "unmarshal errors:\n"), "\n") {
				warn(ctx, strings.TrimSpace(line))
			}
			continue
		}
		warn(ctx, text)
	}
}

func (l *warnings) add(text string) {
	text = cutRunes(text, maxWarningsRunes) // one alone takes the room of all
	if text == "" || l.seen[text] || len(l.texts) >= maxWarningsPerBody {
		return
	}
	l.seen[text] = true
	l.texts = append(l.texts, text)
}

// fitting are the texts that are sent.
func (l *warnings) fitting() []string {
	total := func(texts []string) (runes int) {
		for _, text := range texts {
			runes += utf8.RuneCountInString(text)
		}
		return runes
	}
	if total(l.texts) <= maxWarningsRunes {
		return l.texts
	}
	var out []string
	for _, text := range l.texts {
		if total(out) >= maxWarningsRunes {
			break
		}
		out = append(out, cutRunes(text, maxWarningRunes))
	}
	return out
}

func cutRunes(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	runes := []rune(text)
	return string(runes[:min(limit, len(runes))])
}

// sendWarnings writes the headers; called once, just before the status line.
func sendWarnings(ctx context.Context, header http.Header) {
	list := factsOf(ctx).warnings
	if list == nil {
		return
	}
	list.mu.Lock()
	defer list.mu.Unlock()
	for _, text := range list.fitting() {
		if value, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
			header.Add("Warning", value)
		}
	}
}
