package apiserver

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// bare is a server with a chain and no store: enough for what stands before the handlers.
func bare() *Server {
	m := newMetrics()
	s := &Server{log: slog.New(slog.DiscardHandler), metrics: m, inFlight: newInFlight(m)}
	s.judges.Store(&judges{anonymousPaths: []string{"*"}})
	return s
}

func TestPanicIsOneRequestsAffair(t *testing.T) {
	s := bare()
	h := chain(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/panic":
			panic("oh")
		case "/late":
			w.WriteHeader(http.StatusOK)
			panic("too late for a status")
		}
	}), s.entry()...)
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w
	}
	failed := get("/panic")
	require.Equal(t, http.StatusInternalServerError, failed.Code)
	require.Contains(t, failed.Body.String(), `"reason":"InternalError"`)
	require.NotEmpty(t, failed.Header().Get(auditIDHeader))
	require.PanicsWithValue(t, http.ErrAbortHandler, func() { get("/late") }, "net/http cuts the connection")
	require.Equal(t, http.StatusOK, get("/fine").Code)
}

func TestWarnings(t *testing.T) {
	list := &warnings{seen: map[string]bool{}}
	ctx := withFacts(t.Context(), &requestFacts{warnings: list})
	warn(ctx, "one", "one", "", strings.Repeat("é", 1000), `with "quotes"`)
	header := http.Header{}
	sendWarnings(ctx, header)
	require.Equal(t, []string{`299 - "one"`, `299 - "` + strings.Repeat("é", 1000) + `"`, `299 - "with \"quotes\""`}, header.Values("Warning"))
	for i := range 10_000 {
		warn(ctx, strings.Repeat("x", i%2000))
	}
	require.LessOrEqual(t, len(list.texts), maxWarningsPerBody)
	runes := 0
	for _, text := range list.fitting() {
		runes += utf8.RuneCountInString(text)
		require.LessOrEqual(t, utf8.RuneCountInString(text), maxWarningRunes, "all together they are too long")
	}
	require.Less(t, runes, maxWarningsRunes+maxWarningRunes)
	require.Greater(t, runes, maxWarningsRunes/2)
}

// FuzzRequest is about the first stage that reads what an unknown client sends.
func FuzzRequest(f *testing.F) {
	h := chain(handlerFunc(func(http.ResponseWriter, *http.Request) error { return errNotFoundPath() }), bare().entry()...)
	f.Add("GET", "/api/v1", "application/json", "x", "id")
	f.Fuzz(func(t *testing.T, method, path, accept, authorization, id string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.Method, r.URL.Path = method, path
		r.Header.Set("Accept", accept)
		r.Header.Set("Authorization", authorization)
		r.Header.Set(auditIDHeader, id)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Contains(t, []int{http.StatusNotFound, http.StatusUnauthorized}, w.Code)
	})
}
